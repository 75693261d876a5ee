// SPDX-License-Identifier: Apache-2.0
// KubeVirt's contract: GPUs by model, device id = PCI address. virt-launcher reads the addresses
// from the environment by position, and opens legacy group nodes and, where there are some, iommufd
// nodes: here both stand together (unlike Kata).
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "kube/contract.h"
#include "kube/nodes.h"
#include "kube/resource_names.h"

namespace switchyard::kube {
namespace {

// "PCI_RESOURCE_NVIDIA_COM_X" for "nvidia.com/X": upper case, "/" and "." to "_", nothing else
// (KubeVirt's own rule, so a hyphen of a configured name stays).
std::string EnvironmentName(absl::string_view resource) {
  std::string name = absl::StrCat("PCI_RESOURCE_", absl::AsciiStrToUpper(resource));
  for (char& c : name) {
    if (c == '/' || c == '.') c = '_';
  }
  return name;
}

class KubevirtContract final : public Contract {
 public:
  KubevirtContract(ResourceNames names, tenancy::FabricMode mode)
      : names_(std::move(names)), mode_(mode) {}

  absl::string_view Name() const override { return "kubevirt"; }
  bool Offers(DeviceKind kind) const override { return kind == DeviceKind::kGpu; }
  std::string ResourceName(DeviceKind kind, std::uint16_t device) const override {
    return names_.Name(kind, device);
  }
  // Also without a fabric: then the answer is one NUMA node if it fits.
  bool PreferredAvailable(DeviceKind kind) const override { return kind == DeviceKind::kGpu; }

  // The VM is started by a process inside the container, so nothing has touched the GPUs yet.
  bool PreStartRequired(DeviceKind kind) const override {
    return kind == DeviceKind::kGpu && mode_ == tenancy::FabricMode::kEnforce;
  }

  std::optional<std::string> DeviceId(const DeviceNumbers& numbers, pci::Backend) const override {
    return numbers.address.ToString();
  }

  ContainerAnswer Answer(absl::string_view resource, const tenancy::Grant& grant,
                         pci::Backend) const override {
    std::string addresses;
    ContainerAnswer answer;
    answer.nodes.emplace_back(kVfioNode);
    for (const tenancy::GrantedDevice& device : grant.devices) {
      absl::StrAppend(&addresses, addresses.empty() ? "" : ",", device.address.ToString());
      AddOnce(answer.nodes, GroupNode(device.iommu_group));
    }
    for (const tenancy::GrantedDevice& device : grant.devices) {
      if (device.backend != pci::Backend::kIommufd) continue;
      AddOnce(answer.nodes, kIommuNode);
      for (const tenancy::GrantedFunction& function : device.functions) {
        if (function.cdev.has_value()) AddOnce(answer.nodes, CdevNode(*function.cdev));
      }
    }
    answer.environment.emplace_back(EnvironmentName(resource), std::move(addresses));
    return answer;
  }

  bool WritesCdi() const override { return false; }
  std::vector<std::string> CdiNodes(const pci::Device&, pci::Backend) const override { return {}; }

 private:
  const ResourceNames names_;
  const tenancy::FabricMode mode_;
};

}  // namespace

Result<std::unique_ptr<Contract>> MakeKubevirtContract(NamingOptions naming, pci::PciIds ids,
                                                       tenancy::FabricMode mode) {
  ASSIGN_OR_RETURN(ResourceNames names,
                   ResourceNames::Make(std::move(naming), std::move(ids), Hyphens::kRemove));
  return std::make_unique<KubevirtContract>(std::move(names), mode);
}

}  // namespace switchyard::kube
