// SPDX-License-Identifier: Apache-2.0
#pragma once

// What pods ask for. They come as a Poisson stream, hold for an exponential time of mean 1 whatever
// their size, and go away for good when they are refused. Load = GPUs asked for per mean holding
// time, as a part of the board's. Plain values; any thread.

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/status.h"

namespace switchyard::bench {

struct Share {
  int size = 0;      // GPUs
  double share = 0;  // of the pods; sums to 1 over a mix
};
using Mix = std::vector<Share>;

// What acceptance counts. By pods, turning a big one away pays if two small ones fit in its place;
// by GPUs it does not.
enum class Measure { kPods, kGpus };
[[nodiscard]] inline double WeightOf(Measure measure, int size) {
  return measure == Measure::kPods ? 1 : size;
}

struct Demand {
  Mix mix;
  double arrivals = 0;  // pods per mean holding time
};

// "1:50,2:25,4:15,8:10": size and weight. kInvalidArgument names the part and the rule.
[[nodiscard]] Result<Mix> ParseMix(absl::string_view text);
// "1:50 2:25 4:15 8:10", in per cent.
[[nodiscard]] std::string MixName(const Mix& mix);
[[nodiscard]] Demand DemandOf(const Mix& mix, double load, int gpus);
// Every mix of `sizes` whose shares are multiples of `step` per cent (a divisor of 100).
[[nodiscard]] std::vector<Mix> EveryMix(const std::vector<int>& sizes, int step);

}  // namespace switchyard::bench
