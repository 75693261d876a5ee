// SPDX-License-Identifier: Apache-2.0
#include "bench/placement/report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "bench/placement/exact.h"
#include "bench/placement/report_parts.h"

namespace switchyard::bench {
namespace {

constexpr std::array kAllocators = {Allocator::kPack, Allocator::kLowestId, Allocator::kRandom,
                                    Allocator::kCountOnly, Allocator::kCountOnlyKeep};

std::vector<int> SizesOf(const std::vector<Mix>& mixes) {
  std::set<int> sizes;
  for (const Mix& mix : mixes) {
    for (const Share& s : mix) sizes.insert(s.size);
  }
  return {sizes.begin(), sizes.end()};
}

struct Cell {
  std::array<std::vector<double>, kAllocators.size()> runs;
  std::optional<double> optimum;
  std::array<std::optional<double>, kCompared.size()> exact;
};

class BoardReport {
 public:
  BoardReport(const PlacementOptions& options, std::vector<Yard> yards, std::ostream& out)
      : options_(options),
        yards_(std::move(yards)),
        exact_(yards_.front(), SizesOf(options.mixes)),
        out_(out) {}

  Status Write() {
    const Yard& yard = yards_.front();
    out_ << absl::StrFormat("\n### %s: %d GPUs, %d partitions, %s\n\n", yard.name,
                            yard.table.modules.size(), yard.table.partitions.size(),
                            exact_.words());
    out_ << "| sizes:% | load | optimum | pack | lowest-id | random | ± | count-only | kept | ± "
            "| pack / optimum | lowest-id / optimum | random / optimum |\n"
            "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n";
    for (const Mix& mix : options_.mixes) {
      for (const double load : options_.loads) {
        ASSIGN_OR_RETURN(const Cell cell, Measure(DemandOf(mix, load, yard.table.modules.size())));
        WriteRow(mix, load, cell);
      }
    }
    out_ << "\n";
    if (lowest_.ratio < Lowest::kNone) {
      out_ << absl::StrFormat("pack / optimum is lowest, %.4f, at %s.\n", lowest_.ratio,
                              lowest_.where);
    }
    if (compared_ > 0) {
      out_ << absl::StrFormat(
          "Replayed and exact acceptance differ by %.1f standard errors at most (%d pairs).\n",
          largest_difference_, compared_);
    }
    return OkStatus();
  }

 private:
  Result<Cell> Measure(const Demand& demand) const {
    ReplayOptions replay;
    replay.seed = options_.seed;
    replay.pods_per_run = options_.pods / options_.runs;
    replay.linger = options_.linger;
    replay.measure = options_.measure;
    Cell cell;
    for (size_t a = 0; a < kAllocators.size(); ++a) {
      cell.runs[a] = Replay(yards_, demand, kAllocators[a], replay);
    }
    ASSIGN_OR_RETURN(cell.optimum, exact_.Optimum(demand, options_.measure));
    // The chains know nothing of partitions that stay active after their pod.
    if (options_.linger > 0) return cell;
    for (size_t a = 0; a < kCompared.size(); ++a) {
      ASSIGN_OR_RETURN(cell.exact[a], exact_.Of(kCompared[a], demand, options_.measure));
    }
    return cell;
  }

  void WriteRow(const Mix& mix, double load, const Cell& cell) {
    out_ << absl::StrFormat("| %s | %.4g | %s |", MixName(mix), load,
                            cell.optimum ? absl::StrFormat("%.4f", *cell.optimum) : "-");
    double error = 0;
    std::array<Rate, kAllocators.size()> rates;
    for (size_t a = 0; a < kAllocators.size(); ++a) {
      rates[a] = RateOf(cell.runs[a]);
      error = std::max(error, rates[a].error);
      out_ << absl::StrFormat(" %.4f |", rates[a].mean);
      // The largest standard error of those that place partitions, then of those that count.
      if (a + 1 == kCompared.size() || a + 1 == kAllocators.size()) {
        out_ << absl::StrFormat(" %.4f |", std::exchange(error, 0));
      }
    }
    for (size_t a = 0; a < kCompared.size(); ++a) {
      if (!cell.optimum) {
        out_ << " - |";
        continue;
      }
      const double ratio = cell.exact[a].value_or(rates[a].mean) / *cell.optimum;
      if (kCompared[a] == Allocator::kPack) {
        lowest_.Take(ratio, absl::StrCat(MixName(mix), ", load ", load));
      }
      if (cell.exact[a]) {
        out_ << absl::StrFormat(" %.4f |", ratio);
        ++compared_;
        if (rates[a].error > 0) {
          largest_difference_ = std::max(largest_difference_,
                                         std::abs(rates[a].mean - *cell.exact[a]) / rates[a].error);
        }
      } else {
        out_ << absl::StrFormat(" %.4f ± %.4f |", ratio, rates[a].error / *cell.optimum);
      }
    }
    out_ << std::endl;  // a row at a time: a long measurement shows that it goes on
  }

  const PlacementOptions& options_;
  const std::vector<Yard> yards_;
  const Exact exact_;
  std::ostream& out_;
  Lowest lowest_;
  int compared_ = 0;
  double largest_difference_ = 0;
};

}  // namespace

Status ReportReplay(const PlacementOptions& options, std::ostream& out) {
  if (options.runs < 2 || options.pods < options.runs) {
    return absl::InvalidArgumentError(
        absl::StrCat("--runs ", options.runs, ", --pods ", options.pods,
                     ": at least two runs, for a standard error, and a pod each"));
  }
  out << absl::StrFormat(
      "Acceptance: pods that got a partition of their size, as a part of all. "
      "%d runs of %d pods a cell, seed %d",
      options.runs, options.pods / options.runs, options.seed);
  if (options.linger > 0) {
    out << absl::StrFormat("; partitions stay active for %g mean holding times after their pod",
                           options.linger);
  }
  out << ".\n";
  for (const std::string& board : options.boards) {
    std::vector<Yard> yards;
    for (int run = 0; run < options.runs; ++run) {
      ASSIGN_OR_RETURN(yards.emplace_back(),
                       LoadYard(board, options.seed + static_cast<std::uint64_t>(run)));
    }
    RETURN_IF_ERROR(CheckSizes(yards.front(), SizesOf(options.mixes)));
    RETURN_IF_ERROR(BoardReport(options, std::move(yards), out).Write());
  }
  return OkStatus();
}

}  // namespace switchyard::bench
