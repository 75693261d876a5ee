// SPDX-License-Identifier: Apache-2.0
// The words of a no: what is known of whoever is in the way, and what to do.
#include "absl/strings/str_cat.h"
#include "tenancy/enforcer_impl.h"
#include "tenancy/partition_check.h"

namespace switchyard::tenancy {
namespace {

std::string OwnerText(const Owner& owner) { return absl::StrCat(owner.kind, " ", owner.key); }

std::string WhoseText(const TenancyRecord& record) {
  return record.owner ? absl::StrCat("tenancy ", record.id, " of ", OwnerText(*record.owner))
                      : absl::StrCat("tenancy ", record.id);
}

}  // namespace

Status Enforcer::Impl::ExplainRefusal(const AdmitInput& in, const Admission& admission) const {
  const std::string asked = absl::StrCat("modules ", in.modules.ToString());
  switch (admission.reason) {
    case Refusal::kNoPartition: {
      const std::string nearest = NearestPartitions(*in.table, in.modules);
      return absl::InvalidArgumentError(absl::StrCat(
          asked,
          " are no partition, and only a partition has NVLink and is kept apart from others; ",
          nearest.empty() ? absl::StrCat("no partition has ", in.modules.size(), " GPUs")
                          : absl::StrCat("the nearest are ", nearest),
          "; kubelet chose GPUs that were not preferred, delete the pod, its controller makes a "
          "new one"));
    }
    case Refusal::kUncertain:
      return absl::UnavailableError(absl::StrCat(
          asked, ": Fabric Manager did not say what became of the last change of ",
          admission.blocker == nullptr ? std::string("an active partition of no tenancy")
                                       : absl::StrCat(WhoseText(*admission.blocker), " (modules ",
                                                      admission.blocker->modules.ToString(), ")"),
          "; it is known within ", absl::FormatDuration(options_.fabric_timeout),
          " of Fabric Manager answering again"));
    case Refusal::kOwned:
      if (admission.claimant != nullptr) {
        return absl::AlreadyExistsError(absl::StrCat(
            asked, " share modules ", (admission.claimant->modules).ToString(), " with ",
            OwnerText(*admission.claimant->owner),
            ", which still has them by kubelet's word of now: one GPU was handed out twice; "
            "nothing was given"));
      }
      return absl::AlreadyExistsError(absl::StrCat(
          asked, ", or an active partition in their way, overlap ", WhoseText(*admission.blocker),
          " (modules ", admission.blocker->modules.ToString(), "), which was not given back"));
    case Refusal::kOwnerUnknown:
      return absl::UnavailableError(absl::StrCat(
          asked, " were last given to ", OwnerText(*admission.claimant->owner),
          ", and kubelet did not say in time whether it still has them (PodResources Get, from "
          "Kubernetes 1.34 on); they are free once kubelet has not listed them for ",
          absl::FormatDuration(options_.grace)));
    case Refusal::kForeign:
      return absl::AlreadyExistsError(absl::StrCat(
          "partition ", admission.foreign->id, " is active, of no tenancy, shares modules ",
          (admission.foreign->modules & in.modules).ToString(), " with ", asked,
          " and has a GPU without a module id, so nobody can tell who has it; complete the module "
          "map (switchyard mapping set)"));
    case Refusal::kDirty:
      return absl::FailedPreconditionError(absl::StrCat(
          asked, " share modules ", (in.modules & in.lost).ToString(),
          " with a partition that Fabric Manager lost while its GPUs are in use; end those virtual "
          "machines first"));
    default:
      return absl::InternalError(
          absl::StrCat(asked, ": refused (", RefusalName(admission.reason), ")"));
  }
}

Status Enforcer::Impl::ExplainHeld(fabric::ModuleSet modules, const Held& held) const {
  std::string whose;
  for (const TenancyRecord& record : ledger_.records()) {
    if (record.modules.Overlaps(modules))
      absl::StrAppend(&whose, whose.empty() ? " (" : ", ", WhoseText(record));
  }
  if (!whose.empty()) whose += ")";
  return absl::AlreadyExistsError(
      absl::StrCat("modules ", modules.ToString(), whose, " are still held open after ",
                   absl::FormatDuration(options_.wait), ": ", HolderText(held, modules),
                   "; end that process, or wait for it"));
}

}  // namespace switchyard::tenancy
