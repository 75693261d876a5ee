// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a consumer's users already have in their manifests: how the device plugin names resources
// and devices, and what a container gets. One contract a node: KubeVirt's (devices by PCI address,
// environment and nodes) or Kata's (devices by number, nodes and a CDI file). Immutable; any
// thread. No path handed out carries the host root.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/pci_address.h"
#include "base/status.h"
#include "pci/inventory.h"
#include "pci/pci_ids.h"
#include "tenancy/grant.h"
#include "tenancy/tenancies.h"

namespace switchyard::kube {

enum class DeviceKind { kGpu, kNvSwitch };

// Of device nodes: mknod, read, write, as both predecessors ask for.
inline constexpr char kNodePermissions[] = "mrw";

// Where resource names come from. Both maps hold what follows "nvidia.com/".
struct NamingOptions {
  // By PCI device id, before every other rule: {0x2330, "GH100_H100_SXM5_80GB"}.
  std::map<std::uint16_t, std::string> names;
  // One name for all devices of a kind. Absent = the contract's own (KubeVirt: by model; Kata: pgpu
  // and nvswitch); empty = by model.
  std::optional<std::string> gpu_alias;
  std::optional<std::string> nvswitch_alias;
};

// The numbers under which the kernel shows a device at this moment.
struct DeviceNumbers {
  PciAddress address;
  std::optional<int> iommu_group;
  std::optional<std::string> cdev;  // "vfio3"
};

// What one container gets.
struct ContainerAnswer {
  std::vector<std::pair<std::string, std::string>> environment;
  std::vector<std::string> nodes;  // host path = container path; each once
};

class Contract {
 public:
  virtual ~Contract() = default;

  // The configuration's word for it: "kubevirt", "kata".
  [[nodiscard]] virtual absl::string_view Name() const = 0;
  [[nodiscard]] virtual bool Offers(DeviceKind kind) const = 0;
  // "nvidia.com/GH100_H100_SXM5_80GB". Several device ids can share one name.
  [[nodiscard]] virtual std::string ResourceName(DeviceKind kind, std::uint16_t device) const = 0;
  [[nodiscard]] virtual bool PreferredAvailable(DeviceKind kind) const = 0;
  // Whether kubelet must ask before each start of a container (after a reboot it starts containers
  // without a new Allocate). Once it must, a kubelet that lost its checkpoint starts none of them
  // again, so only where the answer can keep a container from starting wrongly.
  [[nodiscard]] virtual bool PreStartRequired(DeviceKind kind) const = 0;

  // `node` is the node-wide backend: iommufd if every advertised device has a cdev. Only Kata's
  // contract looks at it.

  // kubelet's device id; nothing if the number it is made of is not there.
  [[nodiscard]] virtual std::optional<std::string> DeviceId(const DeviceNumbers& numbers,
                                                            pci::Backend node) const = 0;
  [[nodiscard]] virtual ContainerAnswer Answer(absl::string_view resource,
                                               const tenancy::Grant& grant,
                                               pci::Backend node) const = 0;
  // Whether the consumer resolves devices in a CDI file, and the nodes of one device there: its own
  // ones, for every function of its group on a vfio driver. Empty while it has none.
  [[nodiscard]] virtual bool WritesCdi() const = 0;
  [[nodiscard]] virtual std::vector<std::string> CdiNodes(const pci::Device& device,
                                                          pci::Backend node) const = 0;
};

// kInvalidArgument names a configured name that is no Kubernetes resource name, or one name for
// both GPUs and NVSwitches.
[[nodiscard]] Result<std::unique_ptr<Contract>> MakeKubevirtContract(NamingOptions naming,
                                                                     pci::PciIds ids,
                                                                     tenancy::FabricMode mode);
[[nodiscard]] Result<std::unique_ptr<Contract>> MakeKataContract(NamingOptions naming,
                                                                 pci::PciIds ids,
                                                                 tenancy::FabricMode mode);

}  // namespace switchyard::kube
