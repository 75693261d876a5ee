// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "apps/doctor.h"
#include "base/files.h"
#include "base/host_root.h"
#include "pci/inventory.h"

namespace switchyard::apps {
namespace {

void CheckIommu(const HostRoot& root, Findings& findings) {
  const Result<std::vector<std::string>> groups = ListFolder(root.Path("sys/kernel/iommu_groups"));
  if (groups.ok() && !groups->empty()) {
    findings.push_back({"iommu", Verdict::kOk, absl::StrCat(groups->size(), " IOMMU groups"), ""});
    return;
  }
  findings.push_back({"iommu", Verdict::kError, "no IOMMU groups: passthrough is impossible",
                      "turn on VT-d or AMD-Vi in the firmware and boot with intel_iommu=on or "
                      "amd_iommu=on"});
}

void CheckDevices(const pci::Inventory& inventory, Findings& findings) {
  int gpus = 0;
  int ready = 0;
  int switches = 0;
  for (const pci::Device& device : inventory.devices) {
    if (!device.self.IsGpu()) {
      ++switches;
      continue;
    }
    ++gpus;
    if (device.ready()) {
      ++ready;
      continue;
    }
    findings.push_back({"gpus", Verdict::kWarning,
                        absl::StrCat(device.address().ToString(), ": ", *device.problem),
                        "bind the GPU to vfio-pci, and every other function of its IOMMU group to "
                        "vfio-pci or nothing"});
  }
  if (gpus == 0) {
    findings.push_back({"gpus", Verdict::kError, "no NVIDIA GPU on this node",
                        "see `lspci -d 10de:`; in a pod, paths.hostRoot must be where the host's "
                        "sys/ is mounted"});
  } else {
    findings.push_back({"gpus", Verdict::kOk,
                        absl::StrCat(ready, " of ", gpus, " GPUs are ready for a virtual machine"),
                        ""});
  }
  if (switches > 0) {
    // Not a question of vfio: on a node with Fabric Manager they stay on the nvidia driver.
    findings.push_back({"nvswitches", Verdict::kOk, absl::StrCat(switches, " NVSwitches"), ""});
  }
  for (const pci::Problem& problem : inventory.problems) {
    findings.push_back({"sysfs", Verdict::kWarning,
                        absl::StrCat(problem.path, ": ", problem.problem),
                        "look at the kernel's log for this device"});
  }
}

void CheckIommufd(const HostRoot& root, const pci::Inventory& inventory, Findings& findings) {
  struct stat ignored{};
  const bool has_iommu = ::stat(root.Path("dev/iommu").c_str(), &ignored) == 0;
  int with_cdev = 0;
  for (const pci::Device& device : inventory.devices) {
    if (device.self.vfio_cdev.has_value()) ++with_cdev;
  }
  if (has_iommu) {
    findings.push_back(
        {"iommufd", Verdict::kOk,
         absl::StrCat("/dev/iommu is there; ", with_cdev, " devices can be opened through it"),
         ""});
  } else if (with_cdev > 0) {
    findings.push_back({"iommufd", Verdict::kWarning,
                        absl::StrCat("no /dev/iommu, though ", with_cdev,
                                     " devices expose vfio-dev: they are offered through their "
                                     "group"),
                        "to use iommufd: modprobe iommufd"});
  } else {
    findings.push_back(
        {"iommufd", Verdict::kOk, "no /dev/iommu: devices are offered through their group", ""});
  }
}

}  // namespace

void CheckHost(const agent::Config& config, Findings& findings) {
  const HostRoot root(config.paths.host_root);
  CheckIommu(root, findings);
  const Result<pci::Inventory> inventory = pci::Scan(root);
  if (!inventory.ok()) {
    findings.push_back({"sysfs", Verdict::kError, std::string(inventory.status().message()),
                        "mount the host's /sys and set paths.hostRoot to the folder above it"});
    return;
  }
  findings.push_back({"sysfs", Verdict::kOk, absl::StrCat(root.Path("sys"), " is readable"), ""});
  CheckDevices(*inventory, findings);
  CheckIommufd(root, *inventory, findings);
}

}  // namespace switchyard::apps
