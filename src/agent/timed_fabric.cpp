// SPDX-License-Identifier: Apache-2.0
#include "agent/timed_fabric.h"

namespace switchyard::agent {

using fabric::FabricList;

template <typename Call>
auto TimedFabric::Time(absl::string_view name, Call call) {
  const absl::Duration began = clock_.Monotonic();
  auto answer = call();
  if (absl::IsCancelled(answer.status())) return answer;
  events_.Measure({"fabric_call",
                   clock_.Monotonic() - began,
                   {{"call", name}, {"outcome", answer.ok() ? "ok" : "failed"}}});
  return answer;
}

Result<FabricList> TimedFabric::ReadPartitions() {
  return Time("read", [this] { return fabric_.ReadPartitions(); });
}

Result<fabric::ModuleEntries> TimedFabric::ReadModuleIds() {
  return Time("read_module_ids", [this] { return fabric_.ReadModuleIds(); });
}

Result<FabricList> TimedFabric::Activate(int partition, absl::Duration within) {
  return Time("activate", [&] { return fabric_.Activate(partition, within); });
}

Result<FabricList> TimedFabric::Deactivate(int partition, absl::Duration within) {
  return Time("deactivate", [&] { return fabric_.Deactivate(partition, within); });
}

Result<FabricList> TimedFabric::SetActivated(std::span<const int> partitions) {
  return Time("set_activated", [&] { return fabric_.SetActivated(partitions); });
}

}  // namespace switchyard::agent
