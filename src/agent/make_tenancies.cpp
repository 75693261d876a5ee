// SPDX-License-Identifier: Apache-2.0
#include "agent/make_tenancies.h"

#include <utility>

#include "absl/strings/str_cat.h"
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

bool RestartIsWarm(const Config& config, EventSink& events) {
  const Result<fabric::RestartKind> kind =
      fabric::FindRestartKind(SettingOf(config.fabric.restart), fabric::kFabricManagerConfig,
                              HostRoot(config.paths.host_root));
  if (kind.ok()) return kind->warm;
  events.Report({"restart_kind_unknown",
                 Severity::kWarning,
                 absl::StrCat("what a restart of Fabric Manager means here can't be told: ",
                              kind.status().message(), "; taken for cold, set fabric.restart"),
                 {}});
  return false;
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
    options.enforce.restart_is_warm = RestartIsWarm(config, *from.events);
    options.enforce.reactivate_at_start = config.consumer == Consumer::kKata;
    parts.control = from.fabric;
    parts.who = PodText;
  }
  return std::make_unique<tenancy::Tenancies>(std::move(options), std::move(parts));
}

}  // namespace switchyard::agent
