// SPDX-License-Identifier: Apache-2.0
#pragma once

// The model kernel: the node's GPUs, and the processes that have them open. Its words to the
// Enforcer may be vague (files of nobody, unreadable processes), wrong they never are. A process
// ends at its own time, also while the Enforcer waits for something else.

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tenancy/board.h"
#include "tenancy/holder_source.h"
#include "tests/enforce/stage.h"

namespace switchyard::enforce_sim {

inline constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

// How a process shows in /proc.
enum class Sight : std::uint8_t {
  kPlain,       // device and process are known
  kAnonymous,   // a vfio file of which nobody can say whose it is
  kUnreadable,  // its files may not be read
  kHidden,      // only the device itself says that it is busy
};

struct Process {
  int pid = 0;
  int pod = 0;  // uid; 0: nobody's
  fabric::ModuleSet holds;
  Sight sight = Sight::kPlain;
  std::int64_t ends = kNever;
};

struct Gpu {
  PciAddress address;
  fabric::ModuleSet modules;  // two where GPUs share an IOMMU group
  int group = 0;
  int cdev = 0;
  bool companion = false;
  bool present = true;
  bool mapped = true;  // the module map has it
};

class Hardware final : public tenancy::HolderSource {
 public:
  explicit Hardware(Stage& stage) : stage_(stage) {}

  // ---- HolderSource
  Result<pci::Holders> Look(std::span<const PciAddress> devices) override;
  Result<bool> IsBusy(const PciAddress& device) override;
  void AwaitChange(const pci::Holders& holders, absl::Duration at_most) override;

  // ---- truth and its changes
  [[nodiscard]] fabric::ModuleSet Held() const;
  [[nodiscard]] fabric::ModuleSet HeldBy(int pod) const;
  int Open(int pod, fabric::ModuleSet modules, Sight sight);
  [[nodiscard]] Process* FindOf(int pod);
  void EndOf(int pod);
  // Ends what is due; true if something was.
  bool Tick();
  [[nodiscard]] std::int64_t NextTick() const;

  void Reboot(bool renumber);
  [[nodiscard]] Gpu* Find(const PciAddress& address);
  [[nodiscard]] tenancy::TenancyDevice NodesOf(const Gpu& gpu) const;
  // Devices whose modules lie in `modules`.
  [[nodiscard]] std::vector<tenancy::TenancyDevice> DevicesOf(fabric::ModuleSet modules) const;
  [[nodiscard]] tenancy::Board MakeBoard() const;

  std::vector<Gpu> gpus;  // ascending address
  std::vector<Process> processes;
  bool iommufd = false;
  std::function<void(fabric::ModuleSet asked, fabric::ModuleSet held)> told;
  bool blind = false;          // /proc can't be read
  std::vector<Process> ended;  // since they were last taken: the kubelet sees its containers end

 private:
  Stage& stage_;
  int next_pid_ = 1000;
};

}  // namespace switchyard::enforce_sim
