// SPDX-License-Identifier: Apache-2.0
#include "pci/inventory.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "pci/function.h"
#include "pci/group.h"
#include "pci/sysfs.h"

namespace switchyard::pci {
namespace {

// One pass over the bus: the devices, and which function says it is in which group.
struct BusScan {
  std::vector<Function> devices;
  std::map<int, std::set<std::string>> linked;
  std::vector<Problem> problems;
};

// Other vendors' functions cost six system calls: opened, group and vendor read, closed.
Status ScanFunction(const Folder& bus, const std::string& name, BusScan& scan) {
  ASSIGN_OR_RETURN(const PciAddress address, PciAddress::Parse(name));
  if (address.ToString() != name)
    return absl::FailedPreconditionError(
        absl::StrCat("the kernel would name this folder ", address.ToString()));
  ASSIGN_OR_RETURN(const Folder folder, bus.OpenChild(name));
  ASSIGN_OR_RETURN(const std::optional<int> group, ReadIommuGroup(folder));
  if (group.has_value()) scan.linked[*group].insert(name);
  ASSIGN_OR_RETURN(const std::uint16_t vendor, ReadVendor(folder));
  if (vendor != kVendorNvidia) return OkStatus();
  ASSIGN_OR_RETURN(Function function, ReadFunction(folder, address, Detail::kAll));
  if (!function.IsGpu() && !function.IsNvSwitch()) return OkStatus();
  ASSIGN_OR_RETURN(function.bars, ReadBars(folder));
  scan.devices.push_back(std::move(function));
  return OkStatus();
}

// What a failed read means depends on whether sysfs still has the device.
Status Explain(const std::string& path, const Status& status) {
  if (::access(path.c_str(), F_OK) != 0)
    return absl::NotFoundError("the device is gone: it was removed or fell off the bus");
  if (!absl::IsNotFound(status)) return status;
  return absl::FailedPreconditionError(status.message());
}

}  // namespace

absl::string_view BackendName(Backend backend) {
  return backend == Backend::kIommufd ? "iommufd" : "legacy";
}

bool Function::IsGpu() const {
  const std::uint32_t kind = class_code >> 8;
  return vendor == kVendorNvidia && (kind == 0x0300 || kind == 0x0302);
}

bool Function::IsNvSwitch() const { return vendor == kVendorNvidia && class_code >> 8 == 0x0680; }

bool Function::IsBridge() const { return class_code >> 8 == 0x0604; }

PciAddress Device::Lead() const {
  for (const Function& member : members) {  // by address
    if (member.IsGpu() == self.IsGpu() && member.IsNvSwitch() == self.IsNvSwitch())
      return member.address;
  }
  return self.address;
}

const Device* Inventory::Find(const PciAddress& address) const {
  const auto found = std::find_if(devices.begin(), devices.end(), [&](const Device& device) {
    return device.address() == address;
  });
  return found == devices.end() ? nullptr : &*found;
}

Result<Inventory> Scan(const HostRoot& root) {
  ASSIGN_OR_RETURN(const Folder bus, Folder::Open(root.Path(kBusFolder)));
  const Result<std::vector<std::string>> names = bus.List(".");
  if (!names.ok()) return Annotate(names.status(), bus.path());
  BusScan scan;
  for (const std::string& name : *names) {
    const Status status = ScanFunction(bus, name, scan);
    if (status.ok()) continue;
    const std::string path = absl::StrCat(bus.path(), "/", name);
    scan.problems.push_back({path, absl::StrCat(absl::string_view(Explain(path, status).message()),
                                                "; the device is left out")});
  }
  Inventory inventory;
  inventory.problems = std::move(scan.problems);
  for (Function& function : scan.devices) {
    std::set<std::string> members;
    if (function.iommu_group.has_value()) {
      members = scan.linked[*function.iommu_group];
      members.merge(ListedInGroup(root, *function.iommu_group));
    }
    inventory.devices.push_back(WithGroup(root, std::move(function), members, Detail::kAll));
  }
  std::sort(inventory.devices.begin(), inventory.devices.end(),
            [](const Device& a, const Device& b) { return a.address() < b.address(); });
  return inventory;
}

Result<Device> ReadDevice(const HostRoot& root, const PciAddress& address,
                          const Function* scanned) {
  const std::string name = address.ToString();
  const std::string path = root.Path(absl::StrCat(kBusFolder, "/", name));
  const Result<Folder> folder = Folder::Open(path);
  const Detail detail = HostHasIommufd(root) ? Detail::kHandover : Detail::kLegacyHandover;
  Result<Function> self =
      folder.ok() ? ReadFunction(*folder, address, detail, scanned) : folder.status();
  if (!self.ok()) return Annotate(Explain(path, self.status()), path);
  if (!self->IsGpu() && !self->IsNvSwitch())
    return absl::FailedPreconditionError(
        absl::StrFormat("%s is neither an NVIDIA GPU nor an NVSwitch: vendor 0x%04x, class 0x%06x",
                        path, self->vendor, self->class_code));
  std::set<std::string> members;
  if (self->iommu_group.has_value()) {
    // The kernel's list is complete; only a copied tree may lack it.
    members = ListedInGroup(root, *self->iommu_group);
    if (!members.contains(name)) {
      ASSIGN_OR_RETURN(std::set<std::string> linked, LinkedToGroup(root, *self->iommu_group));
      members.merge(linked);
    }
  }
  return WithGroup(root, *std::move(self), members, detail);
}

}  // namespace switchyard::pci
