// SPDX-License-Identifier: Apache-2.0
#include "tenancy/pci_holders.h"

#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "base/fd_watcher.h"
#include "base/unique_fd.h"
#include "pci/vfio_nodes.h"

namespace switchyard::tenancy {
namespace {

constexpr size_t kMaxNumbers = 32;   // of one device: its nodes, and a few it had before
constexpr size_t kMaxWatched = 256;  // processes; a board has at most 16 GPUs

void AddPids(const std::vector<pci::Holder>& holders, std::set<pid_t>& pids) {
  for (const pci::Holder& holder : holders) {
    if (pids.size() < kMaxWatched) pids.insert(holder.pid);
  }
}

}  // namespace

Result<pci::Holders> PciHolders::Look(std::span<const PciAddress> devices) {
  // The kernel gives a number anew only once nobody has it open any more.
  ASSIGN_OR_RETURN(const std::set<dev_t> current, pci::AllVfioNumbers(root_));
  std::map<PciAddress, std::vector<dev_t>> now;
  for (const PciAddress& address : devices) {
    Result<pci::DeviceNodes> nodes = pci::ReadDeviceNodes(root_, address);
    if (absl::IsNotFound(nodes.status())) continue;
    RETURN_IF_ERROR(nodes.status());
    now[address] = std::move(nodes->numbers);
  }
  std::vector<pci::DeviceNodes> nodes;
  nodes.reserve(devices.size());
  for (const PciAddress& address : devices) {
    std::vector<dev_t>& known = numbers_[address];
    std::erase_if(known, [&](dev_t number) { return current.contains(number); });
    known.insert(known.end(), now[address].begin(), now[address].end());
    if (known.size() > kMaxNumbers)
      known.erase(known.begin(), known.end() - static_cast<std::ptrdiff_t>(kMaxNumbers));
    nodes.push_back({address, known});
  }
  return pci::FindHolders(root_, nodes);
}

Result<bool> PciHolders::IsBusy(const PciAddress& device) {
  return pci::DeviceIsBusy(root_, device);
}

void PciHolders::AwaitChange(const pci::Holders& holders, absl::Duration at_most) {
  std::set<pid_t> pids;
  for (const auto& [address, of] : holders.of) AddPids(of, pids);
  AddPids(holders.anyones, pids);
  AddPids(holders.unreadable, pids);

  Wakeup ended;
  const UniqueFd poll(::epoll_create1(EPOLL_CLOEXEC));
  std::vector<UniqueFd> processes;
  for (const pid_t pid : pids) {
    // One that has ended meanwhile is seen at the next look.
    UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    if (!process.valid() || !poll.valid()) continue;
    epoll_event event{};
    event.events = EPOLLIN | EPOLLONESHOT;
    if (::epoll_ctl(poll.get(), EPOLL_CTL_ADD, process.get(), &event) == 0)
      processes.push_back(std::move(process));
  }
  if (processes.empty()) {
    ended.WaitFor(clock_, at_most);
    return;
  }
  // Where it gets no thread, the time at most is what is waited for.
  const FdWatcher watcher("holders", poll.get(), [&] {
    epoll_event event{};
    if (::epoll_wait(poll.get(), &event, 1, 0) > 0) ended.Notify();
  });
  ended.WaitFor(clock_, at_most);
}

}  // namespace switchyard::tenancy
