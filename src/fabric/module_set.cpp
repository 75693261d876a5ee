// SPDX-License-Identifier: Apache-2.0
#include "fabric/module_set.h"

#include "absl/strings/str_join.h"

namespace switchyard::fabric {

std::vector<ModuleId> ModuleSet::ToVector() const {
  std::vector<ModuleId> modules;
  modules.reserve(static_cast<size_t>(size()));
  for (ModuleId m = kMinModule; m <= kMaxModule; ++m) {
    if (Contains(m)) modules.push_back(m);
  }
  return modules;
}

std::string ModuleSet::ToString() const { return absl::StrJoin(ToVector(), ","); }

}  // namespace switchyard::fabric
