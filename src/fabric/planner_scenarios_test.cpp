// SPDX-License-Identifier: Apache-2.0
// tests/data/placement-h100.json: inputs and right answers of a real board under both policies.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "fabric/planner.h"

namespace switchyard::fabric {
namespace {

using nlohmann::json;

class PlacementH100 : public ::testing::TestWithParam<Policy> {
 protected:
  PlacementH100()
      : data_(json::parse(Read("/tests/data/placement-h100.json"))),
        table_(ParseBoard(Read("/sim/boards/hgx-h100.json"), "hgx-h100.json").value()) {}

  static std::string Read(absl::string_view path) {
    return ReadFile(absl::StrCat(SWITCHYARD_SOURCE_DIR, path), 1 << 20).value();
  }

  // Positions in kubelet's list -> modules.
  [[nodiscard]] ModuleSet Modules(const json& devices) const {
    ModuleSet set;
    for (int device : devices) set.Insert(data_["devices"][std::to_string(device)].get<int>());
    return set;
  }

  // Offline: what is not available counts as busy, everything is healthy, no NUMA node is known.
  static PlanRequest Offline(const PartitionTable& table, int size, ModuleSet available) {
    PlanRequest request;
    request.table = &table;
    request.size = size;
    request.available = available;
    request.busy = table.modules - available;
    request.usable = table.modules;
    request.policy = GetParam();
    return request;
  }

  static json Answer(const std::optional<Candidate>& choice) {
    return choice ? json(choice->partition->id) : json(nullptr);
  }

  [[nodiscard]] static std::string Key() { return std::string(PolicyName(GetParam())); }

  json data_;
  PartitionTable table_;
};

TEST_P(PlacementH100, EveryCase) {
  ASSERT_EQ(data_["cases"].size(), 20u);
  for (const json& c : data_["cases"]) {
    SCOPED_TRACE(c["name"].get<std::string>());
    PartitionTable table = table_;
    for (Partition& p : table.partitions) {
      for (int id : c["active"]) p.active = p.active || p.id == id;
    }
    PlanRequest request = Offline(table, c["size"], Modules(c["available"]));
    request.must_include = Modules(c["mustInclude"]);
    EXPECT_EQ(Rank(request).size(), c["candidates"].get<size_t>());
    EXPECT_EQ(Answer(Choose(request)), c["partition"][Key()]);
  }
}

// Pods one after another on an idle board, none ends. Whether the partitions placed are activated
// (enforce) or not (advise) makes no difference on a board whose partitions are nested.
TEST_P(PlacementH100, EverySequence) {
  ASSERT_EQ(data_["sequences"].size(), 12u);
  for (bool activate : {false, true}) {
    for (const json& s : data_["sequences"]) {
      SCOPED_TRACE(absl::StrCat(s["sizes"].dump(), activate ? " activated" : ""));
      PartitionTable table = table_;
      ModuleSet available = table.modules;
      json placed = json::array();
      for (int size : s["sizes"]) {
        const auto choice = Choose(Offline(table, size, available));
        placed.push_back(Answer(choice));
        if (!choice) continue;
        available = available - choice->partition->modules;
        for (Partition& p : table.partitions) p.active |= activate && p.id == choice->partition->id;
      }
      EXPECT_EQ(placed, s["partitions"][Key()]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Both, PlacementH100, ::testing::Values(Policy::kPack, Policy::kLowestId),
                         [](const auto& test) {
                           return test.param == Policy::kPack ? "Pack" : "LowestId";
                         });

}  // namespace
}  // namespace switchyard::fabric
