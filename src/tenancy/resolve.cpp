// SPDX-License-Identifier: Apache-2.0
#include "tenancy/resolve.h"

#include "absl/strings/str_cat.h"
#include "pci/inventory.h"
#include "tenancy/board.h"

namespace switchyard::tenancy {
namespace {

Status Gone(const PciAddress& address, const Status& why) {
  return absl::NotFoundError(absl::StrCat(
      address.ToString(), " is gone from the node (", std::string(why.message()),
      "); look in dmesg for why it left the bus. It is offered again once it is back"));
}

}  // namespace

Result<Resolved> Resolve(const HostRoot& root, const PciAddress& address,
                         const pci::Inventory* scanned) {
  const pci::Device* before = scanned == nullptr ? nullptr : scanned->Find(address);
  const Result<pci::Device> device =
      pci::ReadDevice(root, address, before == nullptr ? nullptr : &before->self);
  if (absl::IsNotFound(device.status())) return Gone(address, device.status());
  if (!device.ok()) return Annotate(device.status(), address.ToString());
  if (!device->ready()) {
    return absl::FailedPreconditionError(
        absl::StrCat(address.ToString(), " can't go to a virtual machine: ", *device->problem));
  }
  if (!device->backend || !device->self.iommu_group) {
    return absl::InternalError(
        absl::StrCat(address.ToString(), ": ready without a backend or an IOMMU group"));
  }
  if (const PciAddress lead = device->Lead(); lead != address) {
    return absl::FailedPreconditionError(absl::StrCat(
        address.ToString(), " shares IOMMU group ", *device->self.iommu_group, " with ",
        lead.ToString(), " and goes to a virtual machine only with it; ask for ", lead.ToString()));
  }

  Resolved resolved;
  resolved.nodes = NodesOf(*device);
  resolved.device.address = address;
  resolved.device.backend = *device->backend;
  resolved.device.iommu_group = *device->self.iommu_group;
  for (const pci::Function& member : device->members) {
    if (member.on_vfio) resolved.device.functions.push_back({member.address, member.vfio_cdev});
    if (device->self.IsGpu() && member.IsGpu()) resolved.gpus.push_back(member.address);
  }
  return resolved;
}

}  // namespace switchyard::tenancy
