// SPDX-License-Identifier: Apache-2.0
#pragma once

// A host's PCI devices as files below one folder (<root>/sys and <root>/dev), edited as the kernel
// edits sysfs when a device comes, goes or changes its driver; each edit also sends the kernel's
// uevents, once the files are there (or gone). Who reads the tree sees no difference; who writes to
// it moves nothing. Any thread.
//
// The sender of the uevents is borrowed and may be null.

#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/pci_address.h"
#include "base/status.h"
#include "sim/sysfs/device_nodes.h"
#include "sim/sysfs/folder_edit.h"
#include "sim/sysfs/pci_function.h"
#include "sim/sysfs/uevents.h"

namespace switchyard::sim {

struct SysfsOptions {
  std::string root;      // an existing folder without sys/ and dev/
  bool iommufd = false;  // /dev/iommu, and a vfio device is /dev/vfio/devices/vfioN too
  std::uint64_t seed = 1;
  UeventSender* uevents = nullptr;
};

// What can be wrong with a device's files.
enum class Defect { kNoNumaNode, kShortResource, kNoCdev };

struct FunctionState {
  FunctionSpec spec;  // .driver is the one it is on now (or will be when it returns)
  bool present = true;
  int group = 0;
  std::optional<int> vfio;  // N of vfioN, on a vfio driver only
  std::set<Defect> defects;
};

class SysfsTree {
 public:
  [[nodiscard]] static Result<std::unique_ptr<SysfsTree>> Create(SysfsOptions options);

  // Device nodes that open; false: plain files, since this process may make no others.
  [[nodiscard]] bool real_nodes() const { return nodes_.real(); }

  // In a group of its own, or in the group of `with`.
  [[nodiscard]] Status Add(const FunctionSpec& spec, std::optional<PciAddress> with = {});
  // Falls off the bus (or `echo 1 > remove`), and comes back on the driver it had, as if that were
  // the one that claims such devices (vfio-pci.ids=): to the kernel it is a new device.
  [[nodiscard]] Status Vanish(const PciAddress& address);
  [[nodiscard]] Status Return(const PciAddress& address);
  // "" = none. The function alone, not its group.
  [[nodiscard]] Status SetDriver(const PciAddress& address, const std::string& driver);
  // The group of `other` becomes part of the group of `address`, as without ACS.
  [[nodiscard]] Status ShareGroup(const PciAddress& address, const PciAddress& other);
  [[nodiscard]] Status Break(const PciAddress& address, Defect defect);
  [[nodiscard]] Status Repair(const PciAddress& address);
  // As a reboot does: every group and vfio number now names another device.
  [[nodiscard]] Status Renumber();

  [[nodiscard]] std::vector<FunctionState> functions() const;  // by address

 private:
  explicit SysfsTree(SysfsOptions options);
  [[nodiscard]] Status MakeSkeleton() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] Result<FunctionState*> Find(const PciAddress& address, bool must_be_present = true)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // The function's folder, its place in the bus and in its group.
  [[nodiscard]] Status Publish(FunctionState& f, std::optional<int> vfio = {})
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] Status Withdraw(FunctionState& f) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] Status WriteAttributes(const FunctionState& f)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] Status WriteUevent(const FunctionState& f, const std::string& driver)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Its driver: the links, and what a vfio driver makes (`vfio`: the N to use, else the lowest).
  [[nodiscard]] Status Bind(FunctionState& f, std::optional<int> vfio)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] Status Unbind(FunctionState& f) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] Status MakeVfio(FunctionState& f, std::optional<int> vfio)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] Status RemoveVfio(FunctionState& f) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] Status RemoveCdev(const FunctionState& f) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] bool GroupHasVfio(int group) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] int LowestFreeVfio() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  [[nodiscard]] Status Send(const std::string& action, const std::string& devpath,
                            const std::string& subsystem, std::vector<std::string> more = {})
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const bool iommufd_;
  UeventSender* const uevents_;
  mutable absl::Mutex mutex_;
  FolderEdit edit_ ABSL_GUARDED_BY(mutex_);
  DeviceNodes nodes_;  // guarded by mutex_, but for real(), which never changes
  std::mt19937_64 random_ ABSL_GUARDED_BY(mutex_);
  int next_group_ ABSL_GUARDED_BY(mutex_);
  std::map<PciAddress, FunctionState> functions_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace switchyard::sim
