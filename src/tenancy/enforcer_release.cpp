// SPDX-License-Identifier: Apache-2.0
// Giving back, by whoever has the right to; and the start of a container.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tenancy/enforcer_impl.h"
#include "tenancy/partition_sets.h"

namespace switchyard::tenancy {

using fabric::ModuleSet;

namespace {

std::string AddressesText(std::span<const TenancyDevice> devices) {
  return absl::StrJoin(devices, ", ", [](std::string* out, const TenancyDevice& device) {
    absl::StrAppend(out, device.address.ToString());
  });
}

}  // namespace

void Enforcer::Impl::Undo(const Acquired& acquired) {
  const std::uint64_t tenancy = acquired.tenancy;
  const Step step(*this, acquired.by - parts_.clock->Monotonic());
  if (!step.taken()) return;
  const Bounded bounded(*this, acquired.by);
  const TenancyRecord* record = ledger_.Find(tenancy);
  if (record == nullptr || !journal_.ok()) return;
  // Whatever happens next: nobody was given it.
  WatchOf(tenancy).abandoned = true;
  const ModuleSet modules = record->modules;
  const Held held = LookAndAsk(modules);
  if (held.modules.Overlaps(modules) || !TimeForAnother().ok()) return;
  (void)End(tenancy, modules - held.modules, "the request it was begun for was refused later");
}

Status Enforcer::Impl::ReleaseOwner(const Owner& owner) {
  const Step step(*this, absl::InfiniteDuration());
  RETURN_IF_ERROR(journal_);
  // A request of this owner that failed may be in the journal all the same.
  RETURN_IF_ERROR(SaveUnsaved());
  std::vector<std::uint64_t> ids;
  for (const TenancyRecord& record : ledger_.records()) {
    if (record.owner == owner) ids.push_back(record.id);
  }
  for (const std::uint64_t id : ids) {
    const ModuleSet modules = ledger_.Find(id)->modules;
    const Held held = LookAndAsk(modules);
    if (held.modules.Overlaps(modules)) {
      return absl::AlreadyExistsError(
          absl::StrCat("tenancy ", id, " of ", owner.kind, " ", owner.key,
                       " can't be released: it is held open by ", HolderText(held, modules)));
    }
    RETURN_IF_ERROR(End(id, modules - held.modules, "its owner gave it back"));
  }
  return OkStatus();
}

Status Enforcer::Impl::ReleaseById(std::uint64_t tenancy, bool force) {
  const Step step(*this, absl::InfiniteDuration());
  RETURN_IF_ERROR(journal_);
  const TenancyRecord* record = ledger_.Find(tenancy);
  if (record == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("there is no tenancy ", tenancy, "; see switchyard tenancies"));
  }
  const ModuleSet modules = record->modules;
  const Held held = LookAndAsk(modules);
  if (held.modules.Overlaps(modules)) {
    return absl::AlreadyExistsError(absl::StrCat("tenancy ", tenancy, " is held open by ",
                                                 HolderText(held, modules),
                                                 "; a held device is never taken away, end that "
                                                 "process first"));
  }
  if (!force) {
    const ReconcileInput in = MakeInput(held, modules);
    const Decisions decisions = tenancy::Reconcile(in);
    const auto decision = std::find_if(decisions.begin(), decisions.end(),
                                       [&](const Decision& d) { return d.tenancy == tenancy; });
    if (decision == decisions.end() ||
        (decision->act != Act::kRelease && decision->act != Act::kForget)) {
      return absl::FailedPreconditionError(
          absl::StrCat("tenancy ", tenancy, " is kept: ",
                       decision == decisions.end() ? absl::string_view("it was not judged")
                                                   : WhyText(decision->why),
                       "; --force releases it all the same, unless it is held open"));
    }
  }
  return End(tenancy, modules - held.modules, "released by the operator");
}

Status Enforcer::Impl::Drain(bool on) {
  {
    const absl::MutexLock lock(&memory_);  // no waiting for the step that is going on
    draining_ = on;
  }
  const Step step(*this, absl::InfiniteDuration());
  Status written = journal_;
  if (written.ok()) {
    const Outside outside(*this);
    written = parts_.journal->WriteDraining(on);
  }
  return Annotate(written, on ? "the node is draining, and that may be forgotten at a restart of "
                                "the agent: the journal can't be written"
                              : "the node is not draining, and may be again after a restart of "
                                "the agent: the journal can't be written");
}

Status Enforcer::Impl::PreStart(std::span<const TenancyDevice> devices) {
  const Step step(*this, options_.wait);
  if (!step.taken())
    return absl::UnavailableError("another change of the fabric is in progress; tried again");
  RETURN_IF_ERROR(journal_);
  const TenancyRecord* record = ledger_.FindByDevice(devices.front().address);
  const auto granted = [&](const TenancyDevice& now) -> const TenancyDevice* {
    if (record == nullptr) return nullptr;
    const auto then =
        std::find_if(record->devices.begin(), record->devices.end(),
                     [&](const TenancyDevice& d) { return d.address == now.address; });
    return then == record->devices.end() ? nullptr : &*then;
  };
  for (const TenancyDevice& now : devices) {
    if (granted(now) != nullptr) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        AddressesText(devices),
        " are in no tenancy together, so nothing says that they are this pod's; delete the pod, "
        "its controller makes a new one"));
  }
  const std::string name = absl::StrCat("tenancy ", record->id);
  if (record->state == TenancyState::kReleasing || record->state == TenancyState::kPlanned)
    return absl::UnavailableError(absl::StrCat(name, " is ", TenancyStateName(record->state)));
  for (const TenancyDevice& now : devices) {
    if (SameNodes(*granted(now), now)) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        now.address.ToString(), " has other device nodes than when ", name,
        " was granted, so the container would open another GPU; delete the pod, its controller "
        "makes a new one"));
  }
  const fabric::Partition* partition = table_ ? FindExact(*table_, record->modules) : nullptr;
  if (record->state == TenancyState::kActive && record->boot == options_.boot &&
      partition != nullptr && partition->active) {
    return OkStatus();
  }
  if (!up_ || table_ == nullptr) return Annotate(fabric_, absl::StrCat(name, " must be activated"));
  if (partition == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat(name, ": no partition in Fabric Manager's table has its modules ",
                     record->modules.ToString(), " any more"));
  }
  if (const fabric::Partition* other = Obstructing(*table_, *partition)) {
    return absl::FailedPreconditionError(
        absl::StrCat(name, ": partition ", other->id, " is active and shares modules ",
                     (other->modules & record->modules).ToString(),
                     " with it; deactivate it with whatever activated it, or delete the pod"));
  }
  if (IsUncertain(*record)) {
    return absl::UnavailableError(absl::StrCat(
        name, ": Fabric Manager did not say what became of its last change, which is known within ",
        absl::FormatDuration(options_.fabric_timeout), "; tried again"));
  }
  const Held held = LookAndAsk(record->modules);
  if (!partition->active && held.modules.Overlaps(record->modules)) {
    return absl::FailedPreconditionError(
        absl::StrCat(name, ": its partition ", partition->id, " is inactive while ",
                     HolderText(held, record->modules),
                     " has its GPUs open: Fabric Manager lost it; end that process first"));
  }
  const std::uint64_t id = record->id;
  TenancyRecord wanted = *record;
  const Result<int> established = Establish(std::move(wanted));
  RETURN_IF_ERROR(Annotate(established.status(), name));
  Tell("reactivated", Severity::kInfo, "activated again before its container starts",
       ledger_.Find(id));
  return OkStatus();
}

}  // namespace switchyard::tenancy
