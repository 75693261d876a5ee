// SPDX-License-Identifier: Apache-2.0
// A request, from its views to its grant.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tenancy/enforcer_impl.h"
#include "tenancy/partition_sets.h"

namespace switchyard::tenancy {
namespace {

using fabric::ModuleSet;
using What = Admission::What;

bool IsAnswered(const Owner& owner, const std::vector<std::pair<Owner, Possession>>& answers) {
  return std::any_of(answers.begin(), answers.end(),
                     [&](const auto& answer) { return answer.first == owner; });
}

Refused ByStatus(Refusal reason, const Status& status) { return {reason, status}; }

}  // namespace

Status Enforcer::Impl::Refuse(Refused refused) {
  ++refusals_[static_cast<size_t>(refused.reason)];
  parts_.events->Report({"tenancy_refused",
                         Severity::kWarning,
                         std::string(refused.status.message()),
                         {{"reason", std::string(RefusalName(refused.reason))}}});
  return std::move(refused.status);
}

Status Enforcer::Impl::RefuseHeld(ModuleSet modules, const Held& held) {
  held_unlisted_ = held_unlisted_ | modules;
  return Refuse({Refusal::kHeld, ExplainHeld(modules, held)});
}

// What makes every request fail.
std::optional<Refused> Enforcer::Impl::Gate() const {
  if (!journal_.ok())
    return ByStatus(Refusal::kJournal, Annotate(journal_, "no tenancy can be begun"));
  if (!options_.boot.known()) {
    return ByStatus(Refusal::kBoot, absl::FailedPreconditionError(
                                        "the kernel's boot id can't be read, so a reboot would go "
                                        "unnoticed; is proc/ mounted under paths.hostRoot?"));
  }
  if (draining_) {
    return ByStatus(Refusal::kDraining,
                    absl::FailedPreconditionError(
                        "the node is being drained by its operator: no new tenancies; schedule "
                        "the pod elsewhere, or end it with: switchyard drain --off"));
  }
  if (table_ == nullptr || !up_) {
    return ByStatus(Refusal::kFabric, Annotate(fabric_, "no partition can be activated now"));
  }
  return std::nullopt;
}

Result<ModuleSet> Enforcer::Impl::ModulesOf(std::span<const TenancyDevice> devices) const {
  ModuleSet modules;
  for (const TenancyDevice& asked : devices) {
    const Board::Device* device = board_.Find(asked.address);
    if (device == nullptr || !device->mapped || device->modules.empty()) {
      return absl::FailedPreconditionError(absl::StrCat(
          asked.address.ToString(),
          " has no module id, so nobody can tell which partition it is in; add it to the module "
          "map (switchyard mapping set)"));
    }
    const TenancyRecord* record = ledger_.FindByDevice(asked.address);
    if (record != nullptr && !record->modules.ContainsAll(device->modules)) {
      return absl::FailedPreconditionError(absl::StrCat(
          asked.address.ToString(), " is module ", device->modules.ToString(),
          " by the module map, and was granted in tenancy ", record->id, " as one of modules ",
          record->modules.ToString(), "; mend the map (switchyard mapping show)"));
    }
    modules = modules | device->modules;
  }
  return modules;
}

Result<Acquired> Enforcer::Impl::Acquire(const TenancyRequest& request) {
  const absl::Duration now = parts_.clock->Monotonic();
  const absl::Duration deadline = request.asked.value_or(now) + options_.wait;
  Step step(*this, deadline - now);
  bool look = false;  // by name, even if nothing but the devices' own word is against it
  Answers answers;
  for (;;) {
    if (!step.taken()) {
      const absl::MutexLock lock(&memory_);
      return Refuse(
          ByStatus(Refusal::kBusy, absl::UnavailableError(absl::StrCat(
                                       "another change of the fabric has been in progress for ",
                                       absl::FormatDuration(options_.wait),
                                       "; delete the pod, its controller makes a new one"))));
    }
    if (std::optional<Refused> refused = Gate()) return Refuse(*std::move(refused));
    const Result<ModuleSet> modules = ModulesOf(request.devices);
    if (!modules.ok()) return Refuse(ByStatus(Refusal::kUnmapped, modules.status()));

    AdmitInput in;
    in.ledger = &ledger_;
    in.table = table_.get();
    in.listing = &listing_;
    in.modules = *modules;
    in.owner = request.owner ? &*request.owner : nullptr;
    in.uncertain = UncertainModules();
    in.unsettled = UnsettledModules();
    in.doubtful = DoubtfulModules();
    for (const ModuleSet lost : lost_foreign_) in.lost = in.lost | lost;
    const ModuleSet involved = Involved(in);
    Claimants claimants;
    if (FindExact(*table_, *modules) != nullptr) claimants = ClaimantsOf(in, involved);
    for (Claimant& claimant : claimants) {
      // No time to ask whom nobody asked yet: unknown, and so refused.
      if (parts_.clock->Monotonic() > deadline && !IsAnswered(*claimant.owner, answers)) break;
      claimant.answer = Ask(*claimant.owner, claimant.modules, answers);
      if (claimant.answer != Possession::kHasNot) break;
    }
    Held held;
    look = look || SomethingInTheWay(in);
    if (look) held = Look(involved);
    AskDevices(involved, held);

    const Admission admission = Admit(in, claimants, held.modules);
    if (admission.what == What::kRefuse)
      return Refuse({admission.reason, ExplainRefusal(in, admission)});
    if (admission.what != What::kWait)
      return CarryOut(request, *modules, admission, involved - held.modules,
                      deadline + options_.fabric_timeout);

    const absl::Duration left = deadline - parts_.clock->Monotonic();
    if (look && left <= absl::ZeroDuration()) return RefuseHeld(admission.held, held);
    if (!look) {
      look = true;
      continue;
    }
    step.Give();
    parts_.holders->AwaitChange(held.holders, std::min(options_.look_again, left));
    // At the end, for the last look, what was said in this request stands.
    if (parts_.clock->Monotonic() < deadline) answers.clear();
    step.Take(deadline - parts_.clock->Monotonic());
    if (!step.taken()) {
      const absl::MutexLock lock(&memory_);
      return RefuseHeld(admission.held, held);
    }
  }
}

Status Enforcer::Impl::TimeForAnother() const {
  const absl::Duration left = *by_ - parts_.clock->Monotonic();
  if (left > absl::ZeroDuration() && left >= longest_) return OkStatus();
  return absl::DeadlineExceededError(
      "a change of the fabric took longer than what is left for the next one, and kubelet can't "
      "wait for more; what was released for this request stays released, delete the pod, its "
      "controller makes a new one");
}

Result<Acquired> Enforcer::Impl::CarryOut(const TenancyRequest& request, ModuleSet modules,
                                          const Admission& admission, ModuleSet free,
                                          absl::Duration by) {
  const Bounded bounded(*this, by);
  const auto failed = [this](const Status& status) -> Status {
    const bool invariant = absl::IsInternal(status) && !fabric::FabricCodeOf(status);
    return Refuse({!journal_failing_ ? (invariant ? Refusal::kInvariant : Refusal::kFabricRefused)
                                     : Refusal::kJournal,
                   status});
  };
  // The table changes under the admission's pointers with the first change.
  const What what = admission.what;
  const std::uint64_t again = admission.tenancy;
  const int partition = admission.partition->id;
  absl::InlinedVector<ModuleSet, 4> foreign;
  for (const fabric::Partition* p : admission.deactivate_first) foreign.push_back(p->modules);

  for (const std::uint64_t id : admission.release_first) {
    if (const Status time = TimeForAnother(); !time.ok()) return failed(time);
    if (const Status ended = End(id, free, "its GPUs were asked for, and nobody has them any more");
        !ended.ok()) {
      return failed(Annotate(ended, absl::StrCat("tenancy ", id, " is in the way")));
    }
  }
  for (const ModuleSet set : foreign) {
    if (const Status time = TimeForAnother(); !time.ok()) return failed(time);
    if (const Status done = DeactivateForeign(set, free); !done.ok()) {
      return failed(
          Annotate(done, absl::StrCat("an active partition of no tenancy is in the way")));
    }
  }
  if (const Status time = TimeForAnother(); !time.ok()) return failed(time);
  if (what == What::kAgain) {
    Result<Acquired> granted = GrantAgain(request, again);
    if (!granted.ok()) return failed(granted.status());
    return granted;
  }

  TenancyRecord record;
  record.id = NewId();
  record.owner = request.owner;
  record.until_released = request.until_released;
  record.partition = partition;
  record.modules = modules;
  record.devices = request.devices;
  record.begun = parts_.clock->Now();
  const std::uint64_t id = record.id;
  if (what == What::kAdopt) {
    record.state = TenancyState::kActive;
    record.adopted = true;
    record.boot = options_.boot;
    const TenancyRecord adopted = record;
    if (const Status saved = Save(std::move(record)); !saved.ok()) return failed(saved);
    Tell("adopted", Severity::kInfo,
         "an active partition of no tenancy is exactly what was asked for", &adopted);
    (void)SaveForeign();  // reported; the journal's word for it is the tenancy
    return Acquired{id, partition, true, by};
  }
  const Result<int> established = Establish(std::move(record));
  if (!established.ok()) return failed(established.status());
  return Acquired{id, *established, true, by};
}

Result<Acquired> Enforcer::Impl::GrantAgain(const TenancyRequest& request, std::uint64_t id) {
  TenancyRecord record = *ledger_.Find(id);
  const bool unsaved = IsUnsaved(id);
  const bool same_owner = request.owner && record.owner == request.owner;
  const fabric::Partition* partition = FindExact(*table_, record.modules);
  TenancyRecord before = record;
  record.owner = request.owner;
  record.until_released = request.until_released;
  record.devices = request.devices;
  if (partition->active) {
    record.state = TenancyState::kActive;
    record.lost = false;
    record.boot = options_.boot;
    record.partition = partition->id;
    if (unsaved || record != before) RETURN_IF_ERROR(Save(record));
    WatchOf(id).uncertain_since.reset();  // what the list shows has happened
  } else {
    if (same_owner) {
      // Its guest may run on a fabric that was taken from under it.
      const Held held = LookAndAsk(record.modules);
      if (!held.modules.empty()) {
        return absl::FailedPreconditionError(absl::StrCat(
            "partition ", partition->id, " is inactive while ", HolderText(held, record.modules),
            " has its GPUs open: Fabric Manager lost it; end that process first"));
      }
    }
    const Result<int> established = Establish(std::move(record));
    // Nobody has it then, unless its owner asks again.
    if (!established.ok() && !same_owner && ledger_.Find(id) != nullptr)
      WatchOf(id).abandoned = true;
    RETURN_IF_ERROR(established.status());
  }
  Watch& watch = WatchOf(id);
  watch.granted_at = parts_.clock->Monotonic();
  watch.unused_since.reset();
  watch.abandoned = false;
  return Acquired{id, ledger_.Find(id)->partition, false, *by_};
}

}  // namespace switchyard::tenancy
