// SPDX-License-Identifier: Apache-2.0
#include "fabric/fabric_answer.h"

#include <utility>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "fabric/fabric_control.h"

namespace switchyard::fabric {
namespace {

constexpr absl::string_view kPayload = "switchyard/fabric-manager-answer";  // "fmConnect -9"

}  // namespace

Status WithFabricAnswer(Status status, const FabricAnswer& answer) {
  const std::string text = absl::StrCat(answer.function, " ", answer.code);
  // Not from a std::string: clang 19 names that constructor otherwise than the gcc that built
  // Debian's Abseil.
  status.SetPayload(kPayload, absl::Cord(absl::string_view(text)));
  return status;
}

std::optional<FabricAnswer> FabricAnswerOf(const Status& status) {
  const auto payload = status.GetPayload(kPayload);
  if (!payload) return std::nullopt;
  const std::string text(*payload);
  const std::vector<std::string> words = absl::StrSplit(text, ' ');
  FabricAnswer answer;
  if (words.size() != 2 || !absl::SimpleAtoi(words[1], &answer.code)) return std::nullopt;
  answer.function = words[0];
  return answer;
}

std::optional<int> FabricCodeOf(const Status& status) {
  const std::optional<FabricAnswer> answer = FabricAnswerOf(status);
  if (!answer) return std::nullopt;
  return answer->code;
}

}  // namespace switchyard::fabric
