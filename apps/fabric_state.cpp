// SPDX-License-Identifier: Apache-2.0
#include "apps/fabric_state.h"

#include "absl/strings/str_cat.h"
#include "apps/operator_client.h"
#include "base/clock.h"
#include "pci/inventory.h"
#include "store/store.h"
#include "tenancy/tenancies.h"

namespace switchyard::apps {
namespace {

// A reader has nobody to report to: what it could not load shows in the answer.
class NoEvents final : public EventSink {
 public:
  void Report(const Event&) override {}
};

// Which of the mapped GPUs a virtual machine could take now, and where they sit. A tree that can't
// be read leaves them unusable and of unknown node.
void LookAtDevices(const HostRoot& root, FabricState& state) {
  const Result<pci::Inventory> inventory = pci::Scan(root);
  if (!inventory.ok()) return;
  for (const auto& [address, entry] : state.map) {
    const pci::Device* device = inventory->Find(address);
    if (device == nullptr) continue;
    if (device->ready()) state.usable.Insert(entry.module);
    const std::optional<int> node = device->self.numa_node;
    state.numa_node[static_cast<size_t>(entry.module)] = node.value_or(-1);
  }
}

Result<FabricState> ReadRemembered(const agent::Config& config) {
  const Result<store::Store::Opened> opened =
      store::Store::Open(config.paths.state, store::Store::Mode::kReadOnly);
  if (opened.status().code() == absl::StatusCode::kNotFound) {
    return absl::NotFoundError(absl::StrCat("no agent listens on ", config.paths.socket,
                                            " and nothing is remembered in ", config.paths.state,
                                            ": start one with `switchyard agent`"));
  }
  RETURN_IF_ERROR(opened.status());
  RealClock clock;
  NoEvents events;
  tenancy::Options options;
  options.host_root = HostRoot(config.paths.host_root);
  options.mode = config.fabric.mode;
  options.policy = config.fabric.policy;
  tenancy::Parts parts;
  parts.clock = &clock;
  parts.events = &events;
  parts.store = opened->store.get();
  const tenancy::Tenancies tenancies(options, parts);

  const tenancy::FabricView view = tenancies.View();
  FabricState state;
  state.mode = std::string(tenancy::FabricModeName(config.fabric.mode));
  state.known = view.known;
  state.read_at = view.read_at;
  state.table = view.table;
  state.map = MapOf(view.map);
  state.map_errors = view.map_errors;
  LookAtDevices(options.host_root, state);
  return state;
}

}  // namespace

std::map<PciAddress, MapEntry> MapOf(const fabric::ModuleMap& map) {
  std::map<PciAddress, MapEntry> entries;
  for (const auto& [address, entry] : map.entries()) {
    MapEntry& shown = entries[address];
    shown.module = entry.module;
    shown.origin = entry.origin;
    for (const fabric::MapSource source : entry.sources) {
      shown.sources.emplace_back(fabric::MapSourceName(source));
    }
  }
  return entries;
}

Result<FabricState> ReadFabricState(const agent::Config& config) {
  const OperatorClient client{config.paths.socket};
  const Result<std::string> answer = client.Get("/v1/fabric");
  if (answer.ok()) return ParseFabricState(*answer);
  if (answer.status().code() != absl::StatusCode::kNotFound) return answer.status();
  return ReadRemembered(config);
}

std::string AgeText(const FabricState& state, absl::Time now) {
  if (!state.known) return "no partition list was ever read";
  const std::string age = absl::FormatDuration(absl::Trunc(now - state.read_at, absl::Seconds(1)));
  if (!state.live) return absl::StrCat("no agent is running; remembered, read ", age, " ago");
  if (!state.up) return absl::StrCat("Fabric Manager is away; read ", age, " ago");
  return absl::StrCat("read ", age, " ago");
}

}  // namespace switchyard::apps
