// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the map files and NVML say at this moment. Blocking (NVML up to the reader's deadline); one
// caller at a time.

#include <string>
#include <vector>

#include "fabric/fabric_reader.h"
#include "fabric/module_map.h"

namespace switchyard::tenancy {

struct MapSources {
  fabric::ModuleMap::Input input;   // files and nvml only
  std::vector<std::string> errors;  // each names the file or NVML, and the rule
  // A file is there and can't be used. Whatever it may say could speak of any GPU, so nothing
  // remembered may speak in its place.
  bool unusable_file = false;
};

// An absent file is normal. `reader` may be null.
[[nodiscard]] MapSources ReadMapSources(const std::vector<std::string>& files,
                                        fabric::FabricReader* reader);

}  // namespace switchyard::tenancy
