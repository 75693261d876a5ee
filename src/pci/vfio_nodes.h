// SPDX-License-Identifier: Apache-2.0
#pragma once

// Numbers of VFIO's character devices. Inside src/pci only; any thread.

#include <sys/types.h>

#include <set>

#include "base/host_root.h"
#include "base/status.h"

namespace switchyard::pci {

// The major numbers of the kernel's drivers "vfio" (groups) and "vfio-dev" (cdevs), by
// <root>/proc/devices. None if VFIO is not loaded, or in a copy without that file.
[[nodiscard]] Result<std::set<unsigned>> VfioMajors(const HostRoot& root);

// The numbers of all group nodes and cdevs that sysfs has now.
[[nodiscard]] Result<std::set<dev_t>> AllVfioNumbers(const HostRoot& root);

}  // namespace switchyard::pci
