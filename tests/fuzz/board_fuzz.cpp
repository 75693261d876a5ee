// SPDX-License-Identifier: Apache-2.0
// Any bytes as a board file: refused with a reason that names the file, or a table that keeps FM's
// limits and on which the planner's two entries agree for every size.
#include <cstdint>
#include <cstdlib>

#include "absl/strings/match.h"
#include "fabric/partition_table.h"
#include "fabric/planner.h"

namespace {

using switchyard::fabric::Candidate;
using switchyard::fabric::PartitionTable;
using switchyard::fabric::PlanRequest;

void CheckTable(const PartitionTable& table) {
  if (table.partitions.size() > 64) std::abort();
  for (size_t i = 0; i < table.partitions.size(); ++i) {
    if (table.partitions[i].modules.empty() || !table.partitions[i].complete) std::abort();
    if (!table.modules.ContainsAll(table.partitions[i].modules)) std::abort();
    if (i > 0 && table.partitions[i - 1].id >= table.partitions[i].id) std::abort();
  }
}

void Plan(const PartitionTable& table, int size) {
  PlanRequest request;
  request.table = &table;
  request.size = size;
  request.available = table.modules;
  request.usable = table.modules;
  const auto ranked = Rank(request);
  const auto choice = Choose(request);
  if (choice.has_value() == ranked.empty()) std::abort();
  if (choice && choice->partition != ranked.front().partition) std::abort();
  if (ranked.empty() && WhyNone(request).empty()) std::abort();
  for (const Candidate& candidate : ranked) {
    if (Why(request, candidate).empty()) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto table = switchyard::fabric::ParseBoard(text, "board.json");
  if (!table.ok()) {
    if (!absl::StartsWith(table.status().message(), "board.json: ")) std::abort();
    return 0;
  }
  CheckTable(*table);
  for (int n = 0; n <= 17; ++n) Plan(*table, n);
  return 0;
}
