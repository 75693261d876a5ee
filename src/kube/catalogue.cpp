// SPDX-License-Identifier: Apache-2.0
#include "kube/catalogue.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace switchyard::kube {
namespace {

DeviceKind KindOf(const pci::Function& function) {
  return function.IsGpu() ? DeviceKind::kGpu : DeviceKind::kNvSwitch;
}

// Inventory holds GPUs and NVSwitches only, but a group's members may be anything.
bool IsKind(const pci::Function& function, DeviceKind kind) {
  return kind == DeviceKind::kGpu ? function.IsGpu() : function.IsNvSwitch();
}

RememberedDevice Describe(const pci::Device& device) {
  RememberedDevice described;
  described.kind = KindOf(device.self);
  described.device = device.self.device;
  described.numbers = {device.address(), device.self.iommu_group, device.self.vfio_cdev};
  described.iommufd = device.backend == pci::Backend::kIommufd;
  described.numa_node = device.self.numa_node;
  for (const pci::Function& member : device.members) {
    if (IsKind(member, described.kind)) described.members.push_back(member.address);
  }
  return described;
}

// Why no VM could take it now; empty if one could.
std::string WhyUnhealthy(const pci::Inventory& inventory, const RememberedDevice& device) {
  for (const PciAddress& member : device.members) {
    const pci::Device* found = inventory.Find(member);
    if (found != nullptr && found->ready()) continue;
    if (found != nullptr) return *found->problem;
    for (const pci::Problem& problem : inventory.problems) {
      if (absl::StrContains(problem.path, member.ToString())) return problem.problem;
    }
    return absl::StrCat(member.ToString(),
                        " is gone from the PCI bus: it was removed or fell off the bus; it is "
                        "Healthy again when it is back on a vfio driver");
  }
  return "";
}

// Why it must not be offered though a VM could take it; empty if it may.
std::string WhyBlocked(const tenancy::BlockedDevices& blocked, const RememberedDevice& device) {
  for (const PciAddress& member : device.members) {
    const auto found = blocked.find(member);
    if (found != blocked.end()) return found->second;
  }
  return "";
}

template <typename Devices>
auto* FindDevice(Devices& devices, const PciAddress& address) {
  const auto found = std::find_if(devices.begin(), devices.end(), [&](const OfferedDevice& device) {
    return device.address == address;
  });
  return found == devices.end() ? nullptr : &*found;
}

}  // namespace

const OfferedDevice* Resource::FindById(absl::string_view id) const {
  const auto found = std::find_if(devices.begin(), devices.end(),
                                  [&](const OfferedDevice& device) { return device.id == id; });
  return found == devices.end() ? nullptr : &*found;
}

const OfferedDevice* Resource::FindByAddress(const PciAddress& address) const {
  return FindDevice(devices, address);
}

const Resource* Offer::Find(absl::string_view resource) const {
  const auto found = std::find_if(resources.begin(), resources.end(),
                                  [&](const Resource& r) { return r.name == resource; });
  return found == resources.end() ? nullptr : &*found;
}

const OfferedDevice* Offer::FindDevice(absl::string_view resource, absl::string_view id) const {
  const Resource* now = Find(resource);
  if (const OfferedDevice* device = now == nullptr ? nullptr : now->FindById(id)) return device;
  for (const Resource& renamed : resources) {
    const auto& former = renamed.former_names;
    if (std::find(former.begin(), former.end(), resource) == former.end()) continue;
    if (const OfferedDevice* device = renamed.FindById(id)) return device;
  }
  return nullptr;
}

Catalogue::Catalogue(const Contract& contract, store::Store* store, EventSink& events)
    : contract_(contract),
      events_(events),
      memory_(store, events),
      current_(std::make_shared<const Offer>()) {}

std::shared_ptr<const Offer> Catalogue::Current() const {
  absl::MutexLock lock(&mutex_);
  return current_;
}

std::shared_ptr<const Offer> Catalogue::Update(const pci::Inventory& inventory,
                                               const tenancy::BlockedDevices& blocked) {
  Remember(inventory);
  const pci::Backend node = NodeBackend();
  // What has its numbers now goes first: a number that was a gone device's may be another's today.
  std::map<std::string, Resource> resources;
  for (const bool present : {true, false}) {
    for (const auto& [address, device] : memory_.devices()) {
      const pci::Device* found = inventory.Find(address);
      if ((found != nullptr && found->self.on_vfio) == present)
        AddDevice(inventory, blocked, device, node, resources);
    }
  }
  auto offer = std::make_shared<Offer>();
  for (auto& [name, resource] : resources) {
    std::sort(resource.devices.begin(), resource.devices.end(),
              [](const auto& a, const auto& b) { return a.address < b.address; });
    offer->resources.push_back(std::move(resource));
  }
  NoteNames(*offer);
  const std::shared_ptr<const Offer> before = Current();
  ReportChanges(*before, *offer);
  absl::MutexLock lock(&mutex_);
  current_ = std::move(offer);
  return current_;
}

// Keeps every group that a VM's driver has now, under its lead, and drops what an address no longer
// is: another card in the slot, or a device that now belongs to another lead's group.
void Catalogue::Remember(const pci::Inventory& inventory) {
  for (const pci::Device& device : inventory.devices) {
    const PciAddress& address = device.address();
    if (!contract_.Offers(KindOf(device.self))) continue;
    const auto known = memory_.devices().find(address);
    const bool was_known = known != memory_.devices().end();
    if (was_known && known->second.device != device.self.device) memory_.Forget(address);
    if (device.Lead() != address) {
      if (memory_.devices().contains(device.Lead())) memory_.Forget(address);
      continue;
    }
    // The rest of a group whose lead fell off the bus is still that lead's.
    const auto lead =
        std::find_if(memory_.devices().begin(), memory_.devices().end(), [&](const auto& entry) {
          const auto& members = entry.second.members;
          return entry.first != address && inventory.Find(entry.first) == nullptr &&
                 std::find(members.begin(), members.end(), address) != members.end();
        });
    if (lead != memory_.devices().end()) continue;
    if (device.self.on_vfio) {
      memory_.Keep(Describe(device));
    } else if (!memory_.devices().contains(address)) {
      ReportOnce(
          address, "device_not_offered", Severity::kInfo,
          absl::StrCat(address.ToString(), " is not offered before it was seen on a vfio driver: ",
                       device.problem.value_or("")));
    }
  }
}

// A device that is rebound keeps the backend it had: the others' ids must not change for it.
pci::Backend Catalogue::NodeBackend() const {
  const auto& devices = memory_.devices();
  const bool iommufd = std::all_of(devices.begin(), devices.end(), [&](const auto& entry) {
    return entry.second.iommufd || !contract_.Offers(entry.second.kind);
  });
  return iommufd ? pci::Backend::kIommufd : pci::Backend::kLegacy;
}

void Catalogue::AddDevice(const pci::Inventory& inventory, const tenancy::BlockedDevices& blocked,
                          const RememberedDevice& device, pci::Backend node,
                          std::map<std::string, Resource>& resources) {
  const PciAddress& address = device.numbers.address;
  if (!contract_.Offers(device.kind)) return;  // remembered by another contract
  const auto refuse = [&](absl::string_view why) {
    ReportOnce(address, "device_not_offered", Severity::kWarning,
               absl::StrCat(address.ToString(), " is not offered: ", why));
  };
  const auto id = contract_.DeviceId(device.numbers, node);
  if (!id.has_value()) return refuse("it has no IOMMU group: enable the IOMMU");
  const std::string name = contract_.ResourceName(device.kind, device.device);
  Resource& resource = resources[name];
  if (resource.devices.empty()) {
    resource.name = name;
    resource.kind = device.kind;
    resource.preferred_available = contract_.PreferredAvailable(device.kind);
    resource.pre_start_required = contract_.PreStartRequired(device.kind);
    resource.node_backend = node;
  }
  if (resource.kind != device.kind) {
    return refuse(absl::StrCat(
        name, " already names ", resource.kind == DeviceKind::kGpu ? "GPUs" : "NVSwitches",
        ": give ", absl::StrFormat("0x%04x", device.device), " another name in resources.names"));
  }
  if (const OfferedDevice* other = resource.FindById(*id); other != nullptr) {
    return refuse(absl::StrCat("it is gone, and its number ", *id, " is now that of ",
                               other->address.ToString()));
  }
  OfferedDevice offered{*id, address, device.members, false, "", device.numa_node, {}};
  offered.why_unhealthy = WhyUnhealthy(inventory, device);
  if (offered.why_unhealthy.empty()) offered.why_unhealthy = WhyBlocked(blocked, device);
  offered.healthy = offered.why_unhealthy.empty();
  const pci::Device* found = inventory.Find(address);
  if (found != nullptr) offered.cdi_nodes = contract_.CdiNodes(*found, node);
  if (device.members.size() > 1) {
    ReportOnce(
        address, "devices_grouped", Severity::kWarning,
        absl::StrCat(device.members.size(), " devices share IOMMU group ",
                     device.numbers.iommu_group.value_or(-1), " and are one device of ", name,
                     ", so less can be allocated than there is: ",
                     absl::StrJoin(device.members, ", ", [](std::string* out, const auto& m) {
                       out->append(m.ToString());
                     })));
  }
  resource.devices.push_back(std::move(offered));
}

void Catalogue::NoteNames(Offer& offer) {
  for (const auto& [address, device] : memory_.devices()) {
    if (!contract_.Offers(device.kind)) continue;
    const std::string name = contract_.ResourceName(device.kind, device.device);
    const auto former = memory_.KeepName(device.device, name);
    if (!former.has_value()) continue;
    events_.Report(
        {"resource_renamed",
         Severity::kWarning,
         absl::StrFormat("devices 0x%04x were advertised as %s and are now %s: pods that "
                         "ask for the old name stay Pending; to keep it, set it in "
                         "resources.names",
                         device.device, *former, name),
         {{"former", *former}, {"resource", name}}});
    if (offer.Find(*former) == nullptr) offer.retired.push_back(*former);
  }
  for (const auto& [address, device] : memory_.devices()) {
    for (Resource& resource : offer.resources) {
      if (resource.FindByAddress(address) == nullptr) continue;
      for (const std::string& name : memory_.FormerNames(device.device)) {
        auto& former = resource.former_names;
        if (std::find(former.begin(), former.end(), name) == former.end()) former.push_back(name);
      }
    }
  }
}

void Catalogue::ReportChanges(const Offer& before, const Offer& now) {
  for (const Resource& resource : now.resources) {
    const Resource* old = before.Find(resource.name);
    for (const OfferedDevice& device : resource.devices) {
      const OfferedDevice* was = old == nullptr ? nullptr : old->FindByAddress(device.address);
      if (was != nullptr && was->id == device.id && was->why_unhealthy == device.why_unhealthy)
        continue;
      const std::string pci = device.address.ToString();
      Event event{"device_offered", Severity::kInfo, "", {}};
      event.fields = {{"resource", resource.name}, {"pci", pci}, {"id", device.id}};
      if (!device.healthy) {
        event.name = "device_unhealthy";
        event.severity = Severity::kWarning;
        event.message = absl::StrCat(pci, " is Unhealthy: ", device.why_unhealthy);
      } else if (was != nullptr && !was->healthy) {
        event.name = "device_healthy";
        event.message = absl::StrCat(pci, " is Healthy again");
      } else {
        event.message = absl::StrCat(pci, " is offered as ", resource.name, "=", device.id);
      }
      events_.Report(event);
    }
  }
}

void Catalogue::ReportOnce(const PciAddress& address, absl::string_view event, Severity severity,
                           const std::string& message) {
  std::string& last = said_[{address, event}];
  if (last == message) return;
  last = message;
  events_.Report({event, severity, message, {{"pci", address.ToString()}}});
}

}  // namespace switchyard::kube
