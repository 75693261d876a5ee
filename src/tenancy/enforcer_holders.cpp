// SPDX-License-Identifier: Apache-2.0
// Who has what: processes, the devices themselves, and owners.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tenancy/enforcer_impl.h"

namespace switchyard::tenancy {
namespace {

using fabric::ModuleSet;

constexpr size_t kMaxNamedHolders = 3;

}  // namespace

Enforcer::Impl::Held Enforcer::Impl::Look(ModuleSet modules) {
  Held held;
  const std::vector<PciAddress> devices = board_.AddressesOf(modules);
  Result<pci::Holders> holders = absl::InternalError("not asked");
  {
    const Outside outside(*this);
    holders = parts_.holders->Look(devices);
  }
  if (!holders.ok()) {
    held.modules = modules;
    held.status = holders.status();
    return held;
  }
  held.holders = *std::move(holders);
  ModuleSet seen;
  for (const PciAddress& device : devices) {
    const ModuleSet its = board_.ModulesOf(device);
    seen = seen | its;
    if (held.holders.MayHold(device)) held.modules = held.modules | its;
  }
  // A GPU that is not on the board of now can't be looked at. It is gone from the bus, and so is
  // every file of it, unless something has all of them.
  if (!held.holders.anyones.empty() || !held.holders.unreadable.empty())
    held.modules = held.modules | (modules - seen);
  return held;
}

void Enforcer::Impl::AskDevices(ModuleSet modules, Held& held) {
  for (const Board::Device& device : board_.devices) {
    if (!device.modules.Overlaps(modules) || held.modules.ContainsAll(device.modules)) continue;
    const PciAddress address = device.address;
    const ModuleSet its = device.modules;
    Result<bool> busy = false;
    {
      const Outside outside(*this);
      busy = parts_.holders->IsBusy(address);
    }
    if (busy.ok() && !*busy) continue;
    held.modules = held.modules | its;
    if (!busy.ok()) held.status = busy.status();
  }
  Contradict(held.modules);
}

void Enforcer::Impl::Contradict(ModuleSet used) {
  for (Watch& watch : watches_) {
    const TenancyRecord* record = ledger_.Find(watch.id);
    if (record != nullptr && record->modules.Overlaps(used)) watch.unused_since.reset();
  }
}

Possession Enforcer::Impl::Ask(const Owner& owner, ModuleSet modules, Answers& answers) {
  const auto known = std::find_if(answers.begin(), answers.end(),
                                  [&](const auto& answer) { return answer.first == owner; });
  if (known != answers.end()) return known->second;
  Possession possession = Possession::kUnknown;
  if (assignments_ != nullptr) {
    const std::vector<PciAddress> devices = board_.AddressesOf(modules);
    Result<bool> has = false;
    {
      const Outside outside(*this);
      has = assignments_->StillHas(owner, devices);
    }
    if (has.ok()) possession = *has ? Possession::kHas : Possession::kHasNot;
  }
  answers.emplace_back(owner, possession);
  return possession;
}

std::string Enforcer::Impl::HolderText(const Held& held, ModuleSet modules) const {
  std::vector<std::string> texts;
  const auto add = [&](const pci::Holder& holder) {
    if (texts.size() > kMaxNamedHolders) return;
    if (texts.size() == kMaxNamedHolders) return texts.push_back("and others");
    const std::string who = parts_.who ? parts_.who(holder.cgroup) : "";
    std::string text =
        absl::StrCat("PID ", holder.pid, " (", holder.command, ")", who.empty() ? "" : " of ", who);
    if (std::find(texts.begin(), texts.end(), text) == texts.end())
      texts.push_back(std::move(text));
  };
  for (const auto& [address, holders] : held.holders.of) {
    if (!board_.ModulesOf(address).Overlaps(modules)) continue;
    for (const pci::Holder& holder : holders) add(holder);
  }
  for (const pci::Holder& holder : held.holders.anyones) add(holder);
  for (const pci::Holder& holder : held.holders.unreadable) add(holder);
  if (!texts.empty()) return absl::StrJoin(texts, ", ");
  if (!held.status.ok()) return absl::StrCat("nobody can tell: ", held.status.message());
  return "the kernel says that the group is busy, and no process shows it";
}

}  // namespace switchyard::tenancy
