// SPDX-License-Identifier: Apache-2.0
#include "sim/sysfs/sysfs_tree.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "sim/sysfs/paths.h"

namespace switchyard::sim {
namespace {

constexpr int kMaxFunctions = 256;

bool IsDriverName(const std::string& name) {
  return name.size() <= 64 && std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '-' || c == '_';
         });
}

Status CheckDriver(const std::string& name) {
  if (IsDriverName(name)) return OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("driver \"", name, "\": at most 64 letters, digits, - and _"));
}

// A cyclic permutation (Sattolo): nothing keeps its number.
std::map<int, int> Moved(const std::set<int>& numbers, std::mt19937_64& random) {
  const std::vector<int> from(numbers.begin(), numbers.end());
  std::vector<int> to = from;
  for (size_t i = to.size(); i > 1; --i) std::swap(to[i - 1], to[random() % (i - 1)]);
  std::map<int, int> moved;
  for (size_t i = 0; i < from.size(); ++i) moved[from[i]] = to.size() == 1 ? to[i] + 25 : to[i];
  return moved;
}

}  // namespace

SysfsTree::SysfsTree(SysfsOptions options)
    : iommufd_(options.iommufd),
      uevents_(options.uevents),
      edit_(options.root),
      nodes_(options.root),
      random_(options.seed),
      next_group_(10 + static_cast<int>(random_() % 100)) {}

Result<std::unique_ptr<SysfsTree>> SysfsTree::Create(SysfsOptions options) {
  auto tree = std::unique_ptr<SysfsTree>(new SysfsTree(std::move(options)));
  absl::MutexLock lock(&tree->mutex_);
  RETURN_IF_ERROR(tree->MakeSkeleton());
  return tree;
}

Status SysfsTree::MakeSkeleton() {
  for (const char* folder : {"sys", "dev"}) {
    if (edit_.Exists(folder)) {
      return absl::AlreadyExistsError(absl::StrCat(
          edit_.Path(folder), ": is there already; a tree is made in an empty folder"));
    }
  }
  for (const char* folder :
       {"sys/bus/pci/devices", "sys/bus/pci/drivers/vfio-pci", "sys/kernel/iommu_groups",
        "sys/class/vfio", "sys/class/vfio-dev", "sys/class/misc", "sys/devices/virtual/misc/vfio",
        "sys/module/vfio_pci", "dev/vfio"}) {
    RETURN_IF_ERROR(edit_.Folder(folder));
  }
  ASSIGN_OR_RETURN(std::string number, nodes_.Make("dev/vfio/vfio", 0666));
  RETURN_IF_ERROR(edit_.Write("sys/devices/virtual/misc/vfio/dev", number));
  RETURN_IF_ERROR(edit_.Link("sys/class/misc/vfio", "sys/devices/virtual/misc/vfio"));
  if (!iommufd_) return OkStatus();
  RETURN_IF_ERROR(edit_.Folder("sys/devices/virtual/misc/iommu"));
  ASSIGN_OR_RETURN(number, nodes_.Make("dev/iommu", 0660));
  RETURN_IF_ERROR(edit_.Write("sys/devices/virtual/misc/iommu/dev", number));
  return edit_.Link("sys/class/misc/iommu", "sys/devices/virtual/misc/iommu");
}

Result<FunctionState*> SysfsTree::Find(const PciAddress& address, bool must_be_present) {
  const auto it = functions_.find(address);
  if (it == functions_.end()) {
    return absl::NotFoundError(absl::StrCat(address.ToString(), ": this node never had it"));
  }
  if (must_be_present && !it->second.present) {
    return absl::FailedPreconditionError(
        absl::StrCat(address.ToString(), ": has vanished; make it return first"));
  }
  return &it->second;
}

Status SysfsTree::Add(const FunctionSpec& spec, std::optional<PciAddress> with) {
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(CheckDriver(spec.driver));
  if (functions_.contains(spec.address)) {
    return absl::AlreadyExistsError(absl::StrCat(spec.address.ToString(), ": is there already"));
  }
  if (functions_.size() >= kMaxFunctions) {
    return absl::ResourceExhaustedError(absl::StrCat("a node has at most ", kMaxFunctions));
  }
  FunctionState state;
  state.spec = spec;
  if (with.has_value()) {
    ASSIGN_OR_RETURN(const FunctionState* other, Find(*with, false));
    state.group = other->group;
  } else {
    state.group = next_group_++;
  }
  return Publish(functions_[spec.address] = std::move(state));
}

Status SysfsTree::Vanish(const PciAddress& address) {
  absl::MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(FunctionState * f, Find(address));
  RETURN_IF_ERROR(Withdraw(*f));
  f->present = false;
  return OkStatus();
}

Status SysfsTree::Return(const PciAddress& address) {
  absl::MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(FunctionState * f, Find(address, false));
  if (f->present) {
    return absl::FailedPreconditionError(absl::StrCat(address.ToString(), ": has not vanished"));
  }
  f->present = true;
  return Publish(*f);
}

Status SysfsTree::SetDriver(const PciAddress& address, const std::string& driver) {
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(CheckDriver(driver));
  ASSIGN_OR_RETURN(FunctionState * f, Find(address));
  if (f->spec.driver == driver) return OkStatus();
  RETURN_IF_ERROR(Unbind(*f));
  f->spec.driver = driver;
  return Bind(*f, std::nullopt);
}

Status SysfsTree::ShareGroup(const PciAddress& address, const PciAddress& other) {
  absl::MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(const FunctionState* into, Find(address));
  ASSIGN_OR_RETURN(const FunctionState* from, Find(other));
  const int old_group = from->group;
  const int new_group = into->group;
  for (auto& [a, f] : functions_) {
    if (f.group != old_group || old_group == new_group) continue;
    if (f.present) RETURN_IF_ERROR(Withdraw(f));
    f.group = new_group;
    if (f.present) RETURN_IF_ERROR(Publish(f));
  }
  return OkStatus();
}

Status SysfsTree::Break(const PciAddress& address, Defect defect) {
  absl::MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(FunctionState * f, Find(address));
  if (defect == Defect::kNoCdev) {
    if (!iommufd_ || !f->vfio.has_value()) {
      return absl::FailedPreconditionError(
          absl::StrCat(address.ToString(), ": has no /dev/vfio/devices node to lose"));
    }
    RETURN_IF_ERROR(RemoveCdev(*f));
  }
  f->defects.insert(defect);
  RETURN_IF_ERROR(WriteAttributes(*f));
  return Send("change", DevPath(address), "pci");
}

Status SysfsTree::Repair(const PciAddress& address) {
  absl::MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(FunctionState * f, Find(address));
  RETURN_IF_ERROR(Withdraw(*f));
  f->defects.clear();
  return Publish(*f);
}

Status SysfsTree::Renumber() {
  absl::MutexLock lock(&mutex_);
  std::set<int> groups;
  std::set<int> vfios;
  for (const auto& [address, f] : functions_) {
    groups.insert(f.group);
    if (f.vfio.has_value()) vfios.insert(*f.vfio);
  }
  const std::map<int, int> new_group = Moved(groups, random_);
  std::map<int, int> new_vfio = Moved(vfios, random_);
  std::map<PciAddress, int> wanted;
  for (auto& [address, f] : functions_) {
    if (f.vfio.has_value()) wanted[address] = new_vfio[*f.vfio];
    if (f.present) RETURN_IF_ERROR(Withdraw(f));
    f.group = new_group.at(f.group);
    next_group_ = std::max(next_group_, f.group + 1);
  }
  for (auto& [address, f] : functions_) {
    if (!f.present) continue;
    const auto it = wanted.find(address);
    RETURN_IF_ERROR(Publish(f, it == wanted.end() ? std::nullopt : std::optional(it->second)));
  }
  return OkStatus();
}

std::vector<FunctionState> SysfsTree::functions() const {
  absl::MutexLock lock(&mutex_);
  std::vector<FunctionState> all;
  all.reserve(functions_.size());
  for (const auto& [address, f] : functions_) all.push_back(f);
  return all;
}

Status SysfsTree::Send(const std::string& action, const std::string& devpath,
                       const std::string& subsystem, std::vector<std::string> more) {
  if (uevents_ == nullptr) return OkStatus();
  return uevents_->Send({action, devpath, subsystem, std::move(more)});
}

}  // namespace switchyard::sim
