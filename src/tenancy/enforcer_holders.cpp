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

std::vector<Enforcer::Impl::Suspect> Enforcer::Impl::SuspectsOf(ModuleSet modules) const {
  std::vector<Suspect> suspects;
  ModuleSet known;
  const auto add = [&](const PciAddress& address, ModuleSet its) {
    known = known | its;
    for (Suspect& suspect : suspects) {
      if (suspect.address != address) continue;
      suspect.modules = suspect.modules | its;
      return;
    }
    suspects.push_back({address, its});
  };
  for (const Board::Device& device : board_.devices) {
    if (device.modules.Overlaps(modules)) add(device.address, device.modules);
  }
  for (const TenancyRecord& record : ledger_.records()) {
    if (!record.modules.Overlaps(modules)) continue;
    for (const TenancyDevice& device : record.devices) {
      const ModuleSet now = board_.ModulesOf(device.address);
      if (now.empty() || !record.modules.ContainsAll(now)) add(device.address, record.modules);
    }
  }
  // A module that no GPU has by the map may be that of one without.
  const ModuleSet unknown = modules - known;
  for (const Board::Device& device : board_.devices) {
    if (!device.mapped && !unknown.empty()) add(device.address, unknown);
  }
  return suspects;
}

std::vector<PciAddress> Enforcer::Impl::AddressesOf(ModuleSet modules) const {
  std::vector<PciAddress> addresses;
  for (const Suspect& suspect : SuspectsOf(modules)) addresses.push_back(suspect.address);
  return addresses;
}

Enforcer::Impl::Held Enforcer::Impl::Look(ModuleSet modules) {
  Held held;
  const std::vector<Suspect> suspects = SuspectsOf(modules);
  const std::vector<PciAddress> devices = AddressesOf(modules);
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
  for (const Suspect& suspect : suspects) {
    seen = seen | suspect.modules;
    if (held.holders.MayHold(suspect.address)) held.modules = held.modules | suspect.modules;
  }
  // A GPU that nobody knows can't be looked at. It is gone from the bus, and so is every file of
  // it, unless something has all of them.
  if (!held.holders.anyones.empty() || !held.holders.unreadable.empty())
    held.modules = held.modules | (modules - seen);
  return held;
}

void Enforcer::Impl::AskDevices(ModuleSet modules, Held& held) {
  for (const Suspect& suspect : SuspectsOf(modules)) {
    if (held.modules.ContainsAll(suspect.modules)) continue;
    Result<bool> busy = false;
    {
      const Outside outside(*this);
      busy = parts_.holders->IsBusy(suspect.address);
    }
    if (busy.ok() && !*busy) continue;
    held.modules = held.modules | suspect.modules;
    if (!busy.ok()) held.status = busy.status();
  }
  Contradict(held.modules);
}

Enforcer::Impl::Held Enforcer::Impl::LookAndAsk(ModuleSet modules) {
  Held held = Look(modules);
  AskDevices(modules, held);
  return held;
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
    const std::vector<PciAddress> devices = AddressesOf(modules);
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
  for (const PciAddress& address : AddressesOf(modules)) {
    const auto its = held.holders.of.find(address);
    if (its == held.holders.of.end()) continue;
    for (const pci::Holder& holder : its->second) add(holder);
  }
  for (const pci::Holder& holder : held.holders.anyones) add(holder);
  for (const pci::Holder& holder : held.holders.unreadable) add(holder);
  if (!texts.empty()) return absl::StrJoin(texts, ", ");
  if (!held.status.ok()) return absl::StrCat("nobody can tell: ", held.status.message());
  return "the kernel says that the group is busy, and no process shows it";
}

}  // namespace switchyard::tenancy
