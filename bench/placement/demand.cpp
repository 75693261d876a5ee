// SPDX-License-Identifier: Apache-2.0
#include "bench/placement/demand.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "fabric/module_set.h"

namespace switchyard::bench {
namespace {

Status Wrong(absl::string_view text, absl::string_view part, absl::string_view rule) {
  return absl::InvalidArgumentError(absl::StrCat("mix \"", text, "\": \"", part, "\" ", rule,
                                                 "; write it like 1:50,2:25,4:15,8:10"));
}

void Extend(const std::vector<int>& sizes, int step, int left, Mix& begun, std::vector<Mix>& all) {
  if (begun.size() + 1 == sizes.size()) {
    Mix mix = begun;
    mix.push_back({sizes.back(), left / 100.0});
    std::erase_if(mix, [](const Share& s) { return s.share == 0; });
    all.push_back(std::move(mix));
    return;
  }
  for (int percent = 0; percent <= left; percent += step) {
    begun.push_back({sizes[begun.size()], percent / 100.0});
    Extend(sizes, step, left - percent, begun, all);
    begun.pop_back();
  }
}

}  // namespace

Result<Mix> ParseMix(absl::string_view text) {
  Mix mix;
  double sum = 0;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::vector<absl::string_view> halves = absl::StrSplit(part, ':');
    Share share;
    if (halves.size() != 2 || !absl::SimpleAtoi(halves[0], &share.size) ||
        !absl::SimpleAtod(halves[1], &share.share)) {
      return Wrong(text, part, "is not SIZE:WEIGHT");
    }
    if (share.size < 1 || share.size > fabric::kMaxModule) {
      return Wrong(text, part, absl::StrCat("has a size outside 1..", fabric::kMaxModule));
    }
    if (!(share.share > 0 && share.share <= 1e6)) {
      return Wrong(text, part, "has a weight outside 0..1000000, or 0");
    }
    for (const Share& other : mix) {
      if (other.size == share.size) return Wrong(text, part, "names a size twice");
    }
    sum += share.share;
    mix.push_back(share);
  }
  for (Share& share : mix) share.share /= sum;
  return mix;
}

std::string MixName(const Mix& mix) {
  return absl::StrJoin(mix, " ", [](std::string* out, const Share& s) {
    absl::StrAppendFormat(out, "%d:%.4g", s.size, 100 * s.share);
  });
}

Demand DemandOf(const Mix& mix, double load, int gpus) {
  double mean = 0;
  for (const Share& s : mix) mean += s.share * s.size;
  return {mix, load * gpus / mean};
}

std::vector<Mix> EveryMix(const std::vector<int>& sizes, int step) {
  std::vector<Mix> all;
  Mix begun;
  if (!sizes.empty()) Extend(sizes, step, 100, begun, all);
  return all;
}

}  // namespace switchyard::bench
