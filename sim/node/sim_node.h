// SPDX-License-Identifier: Apache-2.0
#pragma once

// One simulated node: a board's devices as a sysfs tree, a Fabric Manager, a kubelet, the module
// map file, the vendor libraries and a configuration for the agent, all below one folder. It needs
// no root and no namespaces: whole-binary tests make one in their own process; switchyard-sim's
// daemon makes the same one inside namespaces.
//
// Owns its parts and stops them; leaves the folder to whoever made it. Parts are for any thread;
// the functions here are for one thread at a time.

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "sim/board/board.h"
#include "sim/fm/fabric_manager.h"
#include "sim/kubelet/kubelet.h"
#include "sim/node/agent_yaml.h"
#include "sim/node/movable_clock.h"
#include "sim/node/paths.h"
#include "sim/sysfs/processes.h"
#include "sim/sysfs/sysfs_tree.h"

namespace switchyard::sim {

struct SimNodeOptions {
  std::string dir = {};            // made if missing; short: sockets are below it
  std::string board = "hgx-h100";  // a name or a file; "" = no board, for a kubelet alone
  std::uint64_t seed = 1;
  std::string driver = "vfio-pci";  // of the GPUs; "none" = no driver. NVSwitches are on nvidia
  bool iommufd = false;

  bool with_sysfs = true;
  bool with_fm = true;
  bool with_kubelet = true;

  std::string fm_tcp = {};  // "127.0.0.1:6666", port 0 = any; "" = only the unix socket
  std::optional<ReturnCodes> fm_return_codes = {};  // default: the board's generation
  std::string libraries = {};  // where libnvfm.so.1 is; "" = ../lib of this executable
  bool uevents = false;        // only in a network namespace of our own, and as root
  // Kubelet's, and of Fabric Manager's window after a warm restart; null = one that AdvanceClock
  // moves.
  Clock* clock = nullptr;
  std::string topology_policy = {};  // kubelet's name of it; "" = none
  // Of kubelet; "" = below dir.
  std::string device_plugins = {};
  std::string pod_resources = {};
};

enum class ModuleMapFile { kGood, kMissing, kMalformed };

// IOMMU groups and vfio numbers after a reboot: another device's, or, as where nothing was changed
// in between, those of before.
enum class RebootNumbers { kOthers, kSame };

class SimNode {
 public:
  // All is there and listening when it returns. The folder's root/ must not hold a tree yet.
  [[nodiscard]] static Result<std::unique_ptr<SimNode>> Create(SimNodeOptions options);
  ~SimNode();
  SimNode(const SimNode&) = delete;
  SimNode& operator=(const SimNode&) = delete;

  [[nodiscard]] const NodePaths& paths() const { return paths_; }
  [[nodiscard]] const SimNodeOptions& options() const { return options_; }

  [[nodiscard]] bool has_board() const { return board_.has_value(); }
  [[nodiscard]] bool has_sysfs() const { return sysfs_ != nullptr; }
  [[nodiscard]] bool has_fm() const { return fm_ != nullptr; }
  [[nodiscard]] bool has_kubelet() const { return kubelet_ != nullptr; }

  // Only if the options asked for the part.
  [[nodiscard]] const Board& board() const { return *board_; }
  [[nodiscard]] SysfsTree& sysfs() const { return *sysfs_; }
  [[nodiscard]] FabricManager& fm() const { return *fm_; }
  [[nodiscard]] Kubelet& kubelet() const { return *kubelet_; }

  // The address of a module's GPU: a shorthand for tests. The module must exist.
  [[nodiscard]] PciAddress AddressOf(int module) const;

  // The text of a configuration for the agent; also in paths().agent_yaml() as made by Create.
  [[nodiscard]] std::string AgentYaml(const YamlOverrides& overrides = {}) const {
    return sim::AgentYaml(paths_, overrides);
  }

  // Rewrites the module map file, as an administrator would.
  [[nodiscard]] Status SetModuleMap(ModuleMapFile what);

  // A process that has the device's nodes open, in the node's /proc. It ends with EndHolders or a
  // reboot; the nodes themselves are never busy.
  [[nodiscard]] Result<pid_t> Hold(const PciAddress& address, const HolderSpec& spec = {});
  [[nodiscard]] Result<int> EndHolders(const PciAddress& address);  // how many there were

  // The node restarts: another boot id, Fabric Manager comes up with no active partition, every
  // container is dead, kubelet starts with its checkpoint; groups and vfio numbers change, as
  // after a change of the hardware or the kernel, unless `numbers` says otherwise. Pods wait for
  // Kubelet::ReadmitPod; restart the agent before it.
  [[nodiscard]] Status Reboot(RebootNumbers numbers = RebootNumbers::kOthers);

  // kInvalidArgument for a negative time, kFailedPrecondition if the options brought a clock.
  [[nodiscard]] Status AdvanceClock(absl::Duration by);

 private:
  explicit SimNode(SimNodeOptions options);
  [[nodiscard]] Status Build();
  [[nodiscard]] Status BuildSysfs();
  [[nodiscard]] Status WriteBootId();
  [[nodiscard]] Status CopyLibraries();

  const SimNodeOptions options_;
  const NodePaths paths_;
  MovableClock clock_;
  int boots_ = 0;
  std::optional<Board> board_;
  std::unique_ptr<UeventSender> uevents_;
  std::unique_ptr<SysfsTree> sysfs_;
  std::optional<Processes> processes_;  // with sysfs_
  std::unique_ptr<FabricManager> fm_;
  std::unique_ptr<Kubelet> kubelet_;
};

}  // namespace switchyard::sim
