// SPDX-License-Identifier: Apache-2.0

#include "absl/strings/str_format.h"
#include "bench/placement/exact.h"
#include "bench/placement/report.h"
#include "bench/placement/report_parts.h"

namespace switchyard::bench {
namespace {

constexpr std::array kEverySize = {1, 2, 4, 8};
constexpr double kTarget = 0.995;  // of the optimum's acceptance

std::string Columns(const Lowest& lowest) {
  if (lowest.ratio == Lowest::kNone) return "- | -";
  return absl::StrFormat("%.4f | %s", lowest.ratio, lowest.where);
}

// Over all mixes at one load.
struct Sweep {
  std::array<Lowest, kCompared.size()> lowest;
  Lowest pack_all_sizes;  // over the mixes in which pods ask for every size
  int pack_misses = 0;    // mixes below kTarget
};

Result<Sweep> SweepMixes(const Yard& yard, const Exact& exact, const std::vector<Mix>& mixes,
                         double load, Measure measure) {
  Sweep sweep;
  for (const Mix& mix : mixes) {
    const Demand demand = DemandOf(mix, load, yard.table.modules.size());
    ASSIGN_OR_RETURN(const std::optional<double> optimum, exact.Optimum(demand, measure));
    for (size_t a = 0; a < kCompared.size(); ++a) {
      ASSIGN_OR_RETURN(const std::optional<double> got, exact.Of(kCompared[a], demand, measure));
      if (!got || !optimum) continue;
      const double ratio = *got / *optimum;
      sweep.lowest[a].Take(ratio, MixName(mix));
      if (kCompared[a] != Allocator::kPack) continue;
      if (mix.size() == kEverySize.size()) sweep.pack_all_sizes.Take(ratio, MixName(mix));
      sweep.pack_misses += ratio < kTarget ? 1 : 0;
    }
  }
  return sweep;
}

}  // namespace

Status ReportEveryMix(const PlacementOptions& options, int step, std::ostream& out) {
  if (step < 1 || step > 100 || 100 % step != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--every-mix ", step, ": must be a divisor of 100, such as 10"));
  }
  const std::vector<int> sizes(kEverySize.begin(), kEverySize.end());
  const std::vector<Mix> mixes = EveryMix(sizes, step);
  out << absl::StrFormat(
      "%d mixes of 1, 2, 4 and 8 GPUs in steps of %d %%, exact: the lowest "
      "acceptance as a part of the optimum's, and where (sizes:%%).\n",
      mixes.size(), step);
  for (const std::string& board : options.boards) {
    ASSIGN_OR_RETURN(const Yard yard, LoadYard(board, options.seed));
    RETURN_IF_ERROR(CheckSizes(yard, sizes));
    const Exact exact(yard, sizes);
    out << absl::StrFormat("\n### %s: %s\n\n", yard.name, exact.words());
    if (EveryState(yard, Exact::kMostStates).status().code() ==
        absl::StatusCode::kResourceExhausted) {
      out << absl::StrFormat("left out: more than %d states, which is too many for the policies\n",
                             Exact::kMostStates);
      continue;
    }
    out << absl::StrFormat(
        "| of | load | pack | at | mixes below %g | pack, all sizes asked for | at | lowest-id | "
        "random |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
        kTarget);
    for (const Measure measure : {Measure::kPods, Measure::kGpus}) {
      for (const double load : options.loads) {
        ASSIGN_OR_RETURN(const Sweep sweep, SweepMixes(yard, exact, mixes, load, measure));
        out << absl::StrFormat("| %s | %.4g | %s | %d | %s | %.4f | %.4f |",
                               measure == Measure::kPods ? "pods" : "GPUs", load,
                               Columns(sweep.lowest[0]), sweep.pack_misses,
                               Columns(sweep.pack_all_sizes), sweep.lowest[1].ratio,
                               sweep.lowest[2].ratio)
            << std::endl;
      }
    }
  }
  return OkStatus();
}

}  // namespace switchyard::bench
