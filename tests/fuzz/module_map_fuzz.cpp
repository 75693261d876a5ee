// SPDX-License-Identifier: Apache-2.0
// Any bytes as a module map: refused with a reason that names the file, or a true one-to-one map
// that survives being written and read again.
#include <cstdint>
#include <cstdlib>
#include <set>

#include "absl/strings/match.h"
#include "fabric/module_map.h"

using switchyard::fabric::FormatModuleMap;
using switchyard::fabric::ModuleMap;
using switchyard::fabric::ParseModuleMap;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto entries = ParseModuleMap(text, "map.json");
  if (!entries.ok()) {
    if (!absl::StartsWith(entries.status().message(), "map.json: ")) std::abort();
    if (entries.status().message().size() > 1000) std::abort();
    return 0;
  }
  std::set<int> modules;
  for (const auto& [address, module] : *entries) {
    if (module < 1 || module > 16 || !modules.insert(module).second) std::abort();
  }
  const auto again = ParseModuleMap(FormatModuleMap(*entries), "again");
  if (!again.ok() || *again != *entries) std::abort();
  const ModuleMap map = ModuleMap::Join({{{"map.json", *entries}}, {}, {}, {}});
  if (!map.errors().empty() || map.entries().size() != entries->size()) std::abort();
  return 0;
}
