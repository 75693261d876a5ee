// SPDX-License-Identifier: Apache-2.0
#include "tests/enforce/hardware.h"

#include <algorithm>

namespace switchyard::enforce_sim {

using fabric::ModuleSet;

Result<pci::Holders> Hardware::Look(std::span<const PciAddress> devices) {
  stage_.Point("looking at processes");
  ModuleSet asked;
  ModuleSet absent;  // can't be asked about, and has nobody
  for (const Gpu& gpu : gpus) {
    if (!gpu.present) absent = absent | gpu.modules;
    if (std::find(devices.begin(), devices.end(), gpu.address) != devices.end())
      asked = asked | gpu.modules;
  }
  if (blind) {
    told(asked, asked);
    return absl::PermissionDeniedError("proc can't be read");
  }
  pci::Holders holders;
  ModuleSet held;
  for (const Process& process : processes) {
    const pci::Holder holder{process.pid, "qemu", "", "/dev/vfio/1", ""};
    switch (process.sight) {
      case Sight::kPlain:
        for (const PciAddress& address : devices) {
          const Gpu* gpu = Find(address);
          if (gpu != nullptr && gpu->modules.Overlaps(process.holds))
            holders.of[address].push_back(holder);
        }
        held = held | (process.holds & asked);
        break;
      case Sight::kAnonymous:
        held = asked;
        holders.anyones.push_back(holder);
        break;
      case Sight::kUnreadable:
        held = asked;
        holders.unreadable.push_back(holder);
        break;
      case Sight::kHidden:
        break;
    }
  }
  told(asked | absent, held);
  stage_.Point("having looked at processes");
  return holders;
}

Result<bool> Hardware::IsBusy(const PciAddress& device) {
  stage_.Point("asking a device");
  const Gpu* gpu = Find(device);
  if (gpu == nullptr || !gpu->present) return false;
  const ModuleSet held = gpu->modules & Held();
  if (!held.empty()) told({}, gpu->modules);
  return !held.empty();
}

void Hardware::AwaitChange(const pci::Holders& /*holders*/, absl::Duration at_most) {
  stage_.Point("waiting for a holder");
  const std::int64_t wait = absl::ToInt64Milliseconds(at_most);
  stage_.pass(std::clamp<std::int64_t>(NextTick() - stage_.now(), 0, wait));
  stage_.Point("having waited for a holder");
}

ModuleSet Hardware::Held() const {
  ModuleSet held;
  for (const Process& process : processes) held = held | process.holds;
  return held;
}

ModuleSet Hardware::HeldBy(int pod) const {
  ModuleSet held;
  for (const Process& process : processes) {
    if (process.pod == pod) held = held | process.holds;
  }
  return held;
}

int Hardware::Open(int pod, ModuleSet modules, Sight sight) {
  processes.push_back({next_pid_++, pod, modules, sight, kNever});
  return processes.back().pid;
}

Process* Hardware::FindOf(int pod) {
  const auto found = std::find_if(processes.begin(), processes.end(),
                                  [pod](const Process& p) { return p.pod == pod; });
  return found == processes.end() ? nullptr : &*found;
}

void Hardware::EndOf(int pod) {
  std::erase_if(processes, [pod](const Process& p) { return p.pod == pod; });
}

bool Hardware::Tick() {
  const size_t before = ended.size();
  std::erase_if(processes, [this](const Process& p) {
    if (p.ends > stage_.now()) return false;
    stage_.Tell("  process ", p.pid, " of pod ", p.pod, " ends, which held ", p.holds);
    ended.push_back(p);
    return true;
  });
  return ended.size() != before;
}

std::int64_t Hardware::NextTick() const {
  std::int64_t next = kNever;
  for (const Process& process : processes) next = std::min(next, process.ends);
  return next;
}

void Hardware::Reboot(bool renumber) {
  processes.clear();
  if (!renumber) return;
  for (size_t i = gpus.size(); i > 1; --i) {
    Gpu& other = gpus[static_cast<size_t>(stage_.random.Below(static_cast<int>(i)))];
    std::swap(gpus[i - 1].group, other.group);
    std::swap(gpus[i - 1].cdev, other.cdev);
  }
}

Gpu* Hardware::Find(const PciAddress& address) {
  const auto found = std::find_if(gpus.begin(), gpus.end(),
                                  [&](const Gpu& gpu) { return gpu.address == address; });
  return found == gpus.end() ? nullptr : &*found;
}

tenancy::TenancyDevice Hardware::NodesOf(const Gpu& gpu) const {
  tenancy::TenancyDevice nodes;
  nodes.address = gpu.address;
  nodes.backend = iommufd ? pci::Backend::kIommufd : pci::Backend::kLegacy;
  nodes.iommu_group = gpu.group;
  PciAddress function = gpu.address;
  const int functions = std::max(gpu.modules.size(), gpu.companion ? 2 : 1);
  for (int i = 0; i < functions; ++i) {
    function.function = static_cast<std::uint8_t>(i);
    nodes.functions.push_back(
        {function, iommufd ? absl::StrCat("vfio", gpu.cdev + i) : std::string(), std::nullopt});
  }
  return nodes;
}

std::vector<tenancy::TenancyDevice> Hardware::DevicesOf(ModuleSet modules) const {
  std::vector<tenancy::TenancyDevice> devices;
  for (const Gpu& gpu : gpus) {
    if (modules.ContainsAll(gpu.modules)) devices.push_back(NodesOf(gpu));
  }
  return devices;
}

tenancy::Board Hardware::MakeBoard() const {
  tenancy::Board board;
  for (const Gpu& gpu : gpus) {
    if (!gpu.present) continue;
    board.devices.push_back(
        {gpu.address, gpu.mapped ? gpu.modules : ModuleSet(), gpu.mapped, NodesOf(gpu)});
  }
  return board;
}

}  // namespace switchyard::enforce_sim
