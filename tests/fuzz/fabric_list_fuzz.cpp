// SPDX-License-Identifier: Apache-2.0
// Any bytes as a stored partition list (or the helper's answer): refused, or a list that keeps FM's
// rules, survives being written and read again, and makes a table.
#include <cstdint>
#include <cstdlib>

#include "fabric/module_map.h"
#include "fabric/partition_table.h"

using switchyard::fabric::EntriesOf;
using switchyard::fabric::FabricListFromJson;
using switchyard::fabric::FabricListToJson;
using switchyard::fabric::MakeTable;
using switchyard::fabric::ModuleMap;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto list = FabricListFromJson(text);
  if (!list.ok()) {
    if (list.status().message().empty()) std::abort();
    return 0;
  }
  if (!list->Validate().ok()) std::abort();
  const auto again = FabricListFromJson(FabricListToJson(*list));
  if (!again.ok() || !(*again == *list)) std::abort();
  ModuleMap::Input input;
  input.fabric_manager = EntriesOf(*list, input);
  const ModuleMap map = ModuleMap::Join(input);
  const auto table = MakeTable(*list, map);
  if (table.partitions.size() != list->partitions.size()) std::abort();
  for (const auto& partition : table.partitions) {
    if (!table.modules.ContainsAll(partition.modules)) std::abort();
    if (partition.modules.Contains(0) || partition.modules.Contains(17)) std::abort();
  }
  return 0;
}
