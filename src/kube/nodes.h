// SPDX-License-Identifier: Apache-2.0
#pragma once

// Paths of VFIO's device nodes, as a container sees them (never with the host root), each once and
// in the order first added. From the kernel's Documentation/driver-api/vfio.rst.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace switchyard::kube {

inline constexpr char kVfioNode[] = "/dev/vfio/vfio";
inline constexpr char kIommuNode[] = "/dev/iommu";

inline std::string GroupNode(int iommu_group) { return absl::StrCat("/dev/vfio/", iommu_group); }
inline std::string CdevNode(absl::string_view cdev) {
  return absl::StrCat("/dev/vfio/devices/", cdev);
}

inline void AddOnce(std::vector<std::string>& nodes, std::string node) {
  if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(std::move(node));
}

}  // namespace switchyard::kube
