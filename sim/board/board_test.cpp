// SPDX-License-Identifier: Apache-2.0
#include "sim/board/board.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "sim/board/built_in_boards.h"

namespace switchyard::sim {
namespace {

using ::testing::HasSubstr;

constexpr char kTiny[] = R"({"board": "tiny", "gpuIdentity": "module", "returnCodes": "hopper",
  "nvlinkLineRateMBps": 26562,
  "partitions": [{"id": 7, "gpus": [3, 1], "nvlinksPerGpu": 18},
                 {"id": 2, "gpus": [1], "nvlinksPerGpu": 0}],
  "devices": [{"module": 3, "address": "00000000:1B:00.0", "numaNode": 1, "deviceId": "0x2335"},
              {"module": 1, "address": "43:00.0"}]})";

Board Load(const std::string& name, std::uint64_t seed = 1) {
  Result<Board> board = LoadBoard(name, "", seed);
  EXPECT_TRUE(board.ok()) << board.status();
  return board.ok() ? *std::move(board) : Board();
}

std::vector<PciAddress> AddressesByModule(const Board& board) {
  std::vector<PciAddress> addresses;
  for (const BoardDevice& device : board.devices) addresses.push_back(device.address);
  return addresses;
}

TEST(Board, TheFourPublishedBoardsAreCompiledIn) {
  std::vector<std::string> names;
  for (const auto& [name, text] : BuiltInBoards()) names.push_back(name);
  EXPECT_THAT(names, ::testing::ElementsAre("hgx-2", "hgx-a100-16", "hgx-b200", "hgx-h100"));
}

TEST(Board, H100IsAsPublished) {
  const Board board = Load("hgx-h100");
  EXPECT_EQ(board.name, "hgx-h100");
  EXPECT_FALSE(board.identity_by_pci);
  EXPECT_EQ(board.devices.size(), 8u);
  EXPECT_EQ(board.nvswitches.size(), 4u);
  EXPECT_EQ(board.nvswitch_device_id, 0x22a3);
  ASSERT_EQ(board.partitions.size(), 15u);
  EXPECT_THAT(board.partitions[3].modules, ::testing::ElementsAre(1, 3));
  EXPECT_EQ(board.partitions[3].nvlinks_per_gpu, 18);
  EXPECT_EQ(board.devices[0].device_id, 0x2330);
  EXPECT_EQ(board.devices[0].uuid, "");
}

TEST(Board, EachGenerationHasItsDevicesAndSwitches) {
  EXPECT_EQ(Load("hgx-b200").nvswitches.size(), 0u);
  EXPECT_EQ(Load("hgx-b200").devices[0].device_id, 0x2901);
  EXPECT_EQ(Load("hgx-a100-16").nvswitches.size(), 12u);
  EXPECT_EQ(Load("hgx-a100-16").devices[0].device_id, 0x20b2);
  EXPECT_EQ(Load("hgx-2").nvswitches.size(), 12u);
  EXPECT_EQ(Load("hgx-2").devices[0].device_id, 0x1db8);
}

// For many seeds: the properties that a derived node must have on every board.
TEST(Board, DerivedNodesKeepTheirRules) {
  for (const auto& [name, text] : BuiltInBoards()) {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      SCOPED_TRACE(absl::StrCat(name, " seed ", seed));
      const Board board = Load(name, seed);
      const std::vector<PciAddress> addresses = AddressesByModule(board);
      EXPECT_FALSE(std::is_sorted(addresses.begin(), addresses.end())) << "bus order";

      std::set<PciAddress> all(addresses.begin(), addresses.end());
      all.insert(board.nvswitches.begin(), board.nvswitches.end());
      EXPECT_EQ(all.size(), board.devices.size() + board.nvswitches.size()) << "address twice";

      std::set<int> physical;
      int on_node_0 = 0;
      for (const BoardDevice& device : board.devices) {
        physical.insert(device.physical_id);
        on_node_0 += device.numa_node == 0 ? 1 : 0;
        EXPECT_EQ(device.numa_node, device.address.bus < 0x80 ? 0 : 1);
        EXPECT_EQ(device.physical_id == device.module, !board.identity_by_pci);
        EXPECT_EQ(device.uuid.empty(), !board.identity_by_pci);
      }
      EXPECT_EQ(physical.size(), board.devices.size());
      EXPECT_EQ(*physical.begin(), 1);
      EXPECT_EQ(*physical.rbegin(), static_cast<int>(board.devices.size()));
      EXPECT_EQ(on_node_0, static_cast<int>(board.devices.size() / 2));
    }
  }
}

TEST(Board, TheSeedDecidesAndNothingElse) {
  EXPECT_EQ(AddressesByModule(Load("hgx-h100", 5)), AddressesByModule(Load("hgx-h100", 5)));
  EXPECT_NE(AddressesByModule(Load("hgx-h100", 5)), AddressesByModule(Load("hgx-h100", 6)));
}

TEST(Board, DevicesOfTheFileAreTakenAsTheyAre) {
  Result<Board> board = ParseBoard(kTiny, "tiny.json", 1);
  ASSERT_TRUE(board.ok()) << board.status();
  ASSERT_EQ(board->devices.size(), 2u);
  EXPECT_EQ(board->devices[0].module, 1);
  EXPECT_EQ(board->devices[0].address.ToString(), "0000:43:00.0");
  EXPECT_EQ(board->devices[0].numa_node, -1);
  EXPECT_EQ(board->devices[0].device_id, 0x2330);  // left out: the generation's
  EXPECT_EQ(board->devices[1].address.ToString(), "0000:1b:00.0");
  EXPECT_EQ(board->devices[1].numa_node, 1);
  EXPECT_EQ(board->devices[1].device_id, 0x2335);
  EXPECT_EQ(board->devices[1].physical_id, 3);
  EXPECT_EQ(board->partitions[0].id, 2);  // ascending, whatever the file's order
}

TEST(Board, UnknownNameListsTheKnownOnes) {
  const Status status = LoadBoard("hgx-h1000", "", 1).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("hgx-2, hgx-a100-16, hgx-b200, hgx-h100"));
}

struct BadCase {
  const char* replace;
  const char* by;
  const char* message;  // the error must say this
};

class BadBoard : public ::testing::TestWithParam<BadCase> {};

TEST_P(BadBoard, IsRefusedByNameAndRule) {
  const std::string text = absl::StrReplaceAll(kTiny, {{GetParam().replace, GetParam().by}});
  ASSERT_NE(text, kTiny);
  const Status status = ParseBoard(text, "tiny.json", 1).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("tiny.json"));
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    All, BadBoard,
    ::testing::Values(BadCase{"{\"board\"", "\"board\"", "not JSON"},
                      BadCase{"\"devices\"", "\"device\"", "unknown key; known are"},
                      BadCase{"hopper", "grace", "returnCodes = \"grace\": must be one of"},
                      BadCase{"\"id\": 7", "\"id\": 2", "id = 2: stands there twice"},
                      BadCase{"[3, 1]", "[3, 3]", "names a module twice"},
                      BadCase{"[3, 1]", "[3, 17]", "1 to 16"},
                      BadCase{"[3, 1]", "[3, 1.5]", "1 to 16"},
                      BadCase{"[3, 1]", "[]", "at least one GPU"},
                      BadCase{"[3, 1]", "[3, 1, 2]",
                              "module 2 is in a partition and has no device here"},
                      BadCase{"\"module\": 3", "\"module\": 1", "module = 1: stands there twice"},
                      BadCase{"43:00.0", "1b:00.0", "address = 0000:1b:00.0: stands there twice"},
                      BadCase{"43:00.0", "43:00", "devices[1]: address = \"43:00\""},
                      BadCase{"0x2335", "2335", "deviceId"},
                      BadCase{"\"nvlinksPerGpu\": 18", "\"nvlinksPerGpu\": 65", "from 0 to 64"}));

}  // namespace
}  // namespace switchyard::sim
