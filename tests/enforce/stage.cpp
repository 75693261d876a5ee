// SPDX-License-Identifier: Apache-2.0
#include "tests/enforce/stage.h"

#include "absl/strings/str_format.h"

namespace switchyard::enforce_sim {

const char* RuleName(Rule rule) {
  switch (rule) {
    case Rule::kTwoTenants:
      return "1 two tenants";
    case Rule::kJoined:
      return "2 joined";
    case Rule::kTakenWhileHeld:
      return "3 taken while held";
    case Rule::kNotJournaled:
      return "4 not in the journal";
    case Rule::kForgottenEarly:
      return "4 forgotten early";
    case Rule::kReleasedEarly:
      return "6 released early";
    case Rule::kNotGranted:
      return "granted and not active";
    case Rule::kWrongDevice:
      return "started on a wrong device";
    case Rule::kWrongList:
      return "wrong active list";
    case Rule::kSlow:
      return "too slow";
    case Rule::kLeaked:
      return "leaked";
    case Rule::kRefusedForNothing:
      return "refused for nothing";
    case Rule::kPlanActed:
      return "dry run acted";
    case Rule::kWrongWord:
      return "wrong word";
  }
  return "unknown";
}

std::string Stage::Stamp() const {
  return absl::StrFormat("%9.3f  ", static_cast<double>(clock.now_ms) / 1000);
}

}  // namespace switchyard::enforce_sim
