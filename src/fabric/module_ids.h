// SPDX-License-Identifier: Apache-2.0
#pragma once

// NVML as a source of the module map: which GPU (PCI address) sits where. NVML sees only the GPUs
// on the nvidia driver; on a node whose GPUs are all on vfio it, or the driver, is simply absent.
// One thread; helper process only.

#include "base/status.h"
#include "fabric/module_map.h"
#include "fabric/nvml.h"

namespace switchyard::fabric {

// Initialises, reads and shuts down `nvml`. Empty where the driver is absent. A GPU that is not on
// a baseboard (module 0, or NVML does not support the question) is left out; so is one that fails,
// unless every GPU fails: then the first failure is the error.
[[nodiscard]] Result<ModuleEntries> ReadModuleIdsFrom(NvmlApi& nvml);

// The same with the library at `path` (empty = the loader's search), closed again before the
// return, so a driver that is installed or replaced meanwhile is seen. No library: empty.
[[nodiscard]] Result<ModuleEntries> ReadModuleIdsFromLibrary(const std::string& path);

}  // namespace switchyard::fabric
