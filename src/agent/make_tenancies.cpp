// SPDX-License-Identifier: Apache-2.0
#include "agent/make_tenancies.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/restart_judge.h"
#include "fabric/restart_kind.h"
#include "kube/pod_of_cgroup.h"

namespace switchyard::agent {
namespace {

fabric::RestartSetting SettingOf(FabricRestart restart) {
  switch (restart) {
    case FabricRestart::kWarm:
      return fabric::RestartSetting::kWarm;
    case FabricRestart::kCold:
      return fabric::RestartSetting::kCold;
    case FabricRestart::kAuto:
      return fabric::RestartSetting::kAuto;
  }
  return fabric::RestartSetting::kAuto;
}

std::string PodText(absl::string_view cgroup) {
  const auto pod = kube::PodOf(cgroup);
  return pod ? absl::StrCat("pod ", pod->uid) : std::string();
}

}  // namespace

std::unique_ptr<tenancy::Tenancies> MakeTenancies(const Config& config,
                                                  const TenanciesParts& from) {
  tenancy::Options options;
  options.host_root = HostRoot(config.paths.host_root);
  options.mode = config.fabric.mode;
  options.policy = config.fabric.policy;
  options.module_map_files = config.fabric.module_map;
  tenancy::Parts parts;
  parts.clock = from.clock;
  parts.events = from.events;
  parts.store = from.store;
  parts.reader = from.fabric;
  if (config.fabric.mode == tenancy::FabricMode::kEnforce) {
    options.enforce.wait = config.allocate_wait;
    options.enforce.grace = config.tenancy_grace;
    options.enforce.fabric_timeout = config.fabric.timeout;
    options.enforce.reactivate_at_start = config.consumer == Consumer::kKata;
    parts.control = from.fabric;
    parts.who = PodText;
    const auto judge = std::make_shared<RestartJudge>(SettingOf(config.fabric.restart),
                                                      fabric::kFabricManagerConfig,
                                                      options.host_root, *from.events);
    (void)judge->IsWarm();  // what can't be told is told at the start
    parts.restart_is_warm = [judge] { return judge->IsWarm(); };
  }
  return std::make_unique<tenancy::Tenancies>(std::move(options), std::move(parts));
}

}  // namespace switchyard::agent
