// SPDX-License-Identifier: Apache-2.0
// Kata's contract: GPUs and NVSwitches, device id = N of vfioN or the IOMMU group's number. The two
// ranges overlap, so one backend holds for the whole node, and a container never sees both. Kata's
// shim looks "<resource>=<device id>" up in CDI: the file has the same names.
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kube/contract.h"
#include "kube/nodes.h"
#include "kube/resource_names.h"

namespace switchyard::kube {
namespace {

class KataContract final : public Contract {
 public:
  KataContract(ResourceNames names, tenancy::FabricMode mode)
      : names_(std::move(names)), mode_(mode) {}

  absl::string_view Name() const override { return "kata"; }
  bool Offers(DeviceKind) const override { return true; }
  std::string ResourceName(DeviceKind kind, std::uint16_t device) const override {
    return names_.Name(kind, device);
  }
  bool PreferredAvailable(DeviceKind kind) const override {
    return kind == DeviceKind::kGpu && mode_ != tenancy::FabricMode::kOff;
  }

  // Kata's VM runs, devices plugged, before kubelet asks.
  bool PreStartRequired(DeviceKind) const override { return false; }

  std::optional<std::string> DeviceId(const DeviceNumbers& numbers,
                                      pci::Backend node) const override {
    if (node == pci::Backend::kLegacy) {
      if (!numbers.iommu_group.has_value()) return std::nullopt;
      return absl::StrCat(*numbers.iommu_group);
    }
    constexpr absl::string_view kPrefix = "vfio";
    if (!numbers.cdev.has_value() || !absl::StartsWith(*numbers.cdev, kPrefix)) return std::nullopt;
    return numbers.cdev->substr(kPrefix.size());
  }

  ContainerAnswer Answer(absl::string_view, const tenancy::Grant& grant,
                         pci::Backend node) const override {
    ContainerAnswer answer;
    if (node == pci::Backend::kLegacy) answer.nodes.emplace_back(kVfioNode);
    for (const tenancy::GrantedDevice& device : grant.devices) {
      if (node == pci::Backend::kLegacy) {
        AddOnce(answer.nodes, GroupNode(device.iommu_group));
        continue;
      }
      for (const tenancy::GrantedFunction& function : device.functions) {
        if (function.cdev.has_value()) AddOnce(answer.nodes, CdevNode(*function.cdev));
      }
    }
    return answer;
  }

  bool WritesCdi() const override { return true; }

  // Without /dev/vfio/vfio: the shim takes every node of a device for a device to plug.
  std::vector<std::string> CdiNodes(const pci::Device& device, pci::Backend node) const override {
    std::vector<std::string> nodes;
    if (!device.self.on_vfio) return nodes;
    if (node == pci::Backend::kLegacy) {
      if (device.self.iommu_group.has_value()) nodes.push_back(GroupNode(*device.self.iommu_group));
      return nodes;
    }
    for (const pci::Function& function : device.members) {
      if (function.vfio_cdev.has_value()) AddOnce(nodes, CdevNode(*function.vfio_cdev));
    }
    return nodes;
  }

 private:
  const ResourceNames names_;
  const tenancy::FabricMode mode_;
};

}  // namespace

Result<std::unique_ptr<Contract>> MakeKataContract(NamingOptions naming, pci::PciIds ids,
                                                   tenancy::FabricMode mode) {
  if (!naming.gpu_alias.has_value()) naming.gpu_alias = "pgpu";
  if (!naming.nvswitch_alias.has_value()) naming.nvswitch_alias = "nvswitch";
  ASSIGN_OR_RETURN(ResourceNames names,
                   ResourceNames::Make(std::move(naming), std::move(ids), Hyphens::kKeep));
  return std::make_unique<KataContract>(std::move(names), mode);
}

}  // namespace switchyard::kube
