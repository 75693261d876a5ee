// SPDX-License-Identifier: Apache-2.0
#include "sim/kubelet/device_chooser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace switchyard::sim {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSubsetOf;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

// Eight devices: a-d on node 0, e-g on node 1, h on none.
ChoiceInput Board(int required) {
  ChoiceInput input{.resource = "v/gpu",
                    .required = required,
                    .reusable = {},
                    .available = {},
                    .devices = {},
                    .numa_affinity = {}};
  for (const char* id : {"a", "b", "c", "d", "e", "f", "g", "h"}) {
    std::vector<int> nodes;
    if (*id < 'e') nodes = {0};
    if (*id >= 'e' && *id < 'h') nodes = {1};
    input.devices[id] = {id, "Healthy", nodes};
    input.available.insert(id);
  }
  return input;
}

// A plugin that answers always the same, and keeps what it was asked.
class DeviceChooserTest : public ::testing::Test {
 protected:
  Result<DeviceIds> Choose(const ChoiceInput& input) {
    const PreferFunction prefer = [this](const PreferredRequest& request) {
      asked_.push_back(request);
      reserved_when_asked_ = reserved_;
      return answer_;
    };
    const ReserveFunction reserve = [this](const std::string& id) { reserved_.push_back(id); };
    return ChooseDevices(input, offers_ ? prefer : PreferFunction(), reserve, random_);
  }
  DeviceIds ChooseOk(const ChoiceInput& input) {
    Result<DeviceIds> chosen = Choose(input);
    EXPECT_TRUE(chosen.ok()) << chosen.status();
    return chosen.ok() ? *chosen : DeviceIds();
  }

  Random random_{7};
  bool offers_ = true;
  Result<std::vector<std::string>> answer_ = std::vector<std::string>();
  std::vector<PreferredRequest> asked_;
  std::vector<std::string> reserved_;
  std::vector<std::string> reserved_when_asked_;
};

TEST_F(DeviceChooserTest, AsksOnceAboutAllAvailableWithoutAHintAndTakesTheAnswer) {
  answer_ = std::vector<std::string>{"g", "b"};
  EXPECT_THAT(ChooseOk(Board(2)), ElementsAre("b", "g"));
  ASSERT_THAT(asked_, SizeIs(1));
  EXPECT_THAT(asked_[0].available, UnorderedElementsAre("a", "b", "c", "d", "e", "f", "g", "h"));
  EXPECT_THAT(asked_[0].must_include, IsEmpty());
  EXPECT_EQ(asked_[0].size, 2);
  EXPECT_THAT(reserved_, UnorderedElementsAre("b", "g"));
}

TEST_F(DeviceChooserTest, AHintWithoutAnyTopologyChangesNothing) {
  ChoiceInput input = Board(2);
  for (auto& [id, device] : input.devices) device.numa_nodes.clear();
  input.numa_affinity = {0};
  answer_ = std::vector<std::string>{"g", "b"};
  EXPECT_THAT(ChooseOk(input), ElementsAre("b", "g"));
  EXPECT_THAT(asked_.at(0).available, SizeIs(8));
}

TEST_F(DeviceChooserTest, AsksOnlyAboutAlignedDevicesIfThereAreMoreThanNeeded) {
  ChoiceInput input = Board(3);
  input.numa_affinity = {0};
  answer_ = std::vector<std::string>{"a", "c", "d"};
  EXPECT_THAT(ChooseOk(input), ElementsAre("a", "c", "d"));
  ASSERT_THAT(asked_, SizeIs(1));
  EXPECT_THAT(asked_[0].available, UnorderedElementsAre("a", "b", "c", "d"));
}

TEST_F(DeviceChooserTest, IgnoresUnalignedDevicesInTheAnswerAboutAlignedOnes) {
  ChoiceInput input = Board(3);
  input.numa_affinity = {0};
  answer_ = std::vector<std::string>{"e", "f", "c"};
  EXPECT_THAT(ChooseOk(input), AllOf(SizeIs(3), Contains("c"), IsSubsetOf({"a", "b", "c", "d"})));
}

TEST_F(DeviceChooserTest, TakesAllAlignedDevicesWithoutAskingIfAllAreNeeded) {
  ChoiceInput input = Board(4);
  input.numa_affinity = {0};
  EXPECT_THAT(ChooseOk(input), ElementsAre("a", "b", "c", "d"));
  EXPECT_THAT(asked_, IsEmpty());
}

TEST_F(DeviceChooserTest, TakesAllAlignedDevicesFirstAndAsksAboutTheRest) {
  ChoiceInput input = Board(5);
  input.numa_affinity = {0};
  answer_ = std::vector<std::string>{"a", "b", "c", "d", "g"};
  EXPECT_THAT(ChooseOk(input), ElementsAre("a", "b", "c", "d", "g"));
  ASSERT_THAT(asked_, SizeIs(1));
  EXPECT_THAT(asked_[0].available, SizeIs(8));
  EXPECT_THAT(asked_[0].must_include, UnorderedElementsAre("a", "b", "c", "d"));
  EXPECT_EQ(asked_[0].size, 5);
  EXPECT_THAT(reserved_when_asked_, UnorderedElementsAre("a", "b", "c", "d"));
}

TEST_F(DeviceChooserTest, ADeviceOfTwoNodesIsAlignedToEither) {
  ChoiceInput input = Board(4);
  input.devices["h"].numa_nodes = {0, 1};
  input.numa_affinity = {1};
  EXPECT_THAT(ChooseOk(input), ElementsAre("e", "f", "g", "h"));
}

TEST_F(DeviceChooserTest, FillsUpSilentlyFromUnalignedThenFromNoAffinity) {
  for (const std::vector<std::string>& answer :
       {std::vector<std::string>{}, {"x", "y"}, {"a", "a", "b"}}) {
    ChoiceInput input = Board(7);
    input.numa_affinity = {0};
    answer_ = answer;
    EXPECT_THAT(ChooseOk(input), ElementsAre("a", "b", "c", "d", "e", "f", "g"));
    input.required = 8;
    EXPECT_THAT(ChooseOk(input), Contains("h"));
  }
}

TEST_F(DeviceChooserTest, FillsUpAShortAnswerAtRandom) {
  answer_ = std::vector<std::string>{"c"};
  std::set<DeviceIds> seen;
  for (int i = 0; i < 100; ++i) {
    const DeviceIds chosen = ChooseOk(Board(2));
    EXPECT_THAT(chosen, AllOf(SizeIs(2), Contains("c")));
    seen.insert(chosen);
  }
  EXPECT_THAT(seen, SizeIs(7));  // c with each of the others
}

TEST_F(DeviceChooserTest, CutsALongAnswerAtRandom) {
  answer_ = std::vector<std::string>{"a", "b", "c"};
  std::set<DeviceIds> seen;
  for (int i = 0; i < 100; ++i) seen.insert(ChooseOk(Board(2)));
  EXPECT_THAT(seen, ElementsAre(DeviceIds{"a", "b"}, DeviceIds{"a", "c"}, DeviceIds{"b", "c"}));
}

TEST_F(DeviceChooserTest, SendsIdsInRandomOrderThatTheSeedDecides) {
  const auto order = [](std::uint64_t seed) {
    Random random(seed);
    return InRandomOrder({"a", "b", "c", "d", "e", "f", "g", "h"}, random);
  };
  EXPECT_EQ(order(1), order(1));
  EXPECT_NE(order(1), order(2));
  for (int i = 0; i < 20; ++i) ChooseOk(Board(1));
  EXPECT_TRUE(std::any_of(asked_.begin(), asked_.end(), [](const PreferredRequest& request) {
    return !std::is_sorted(request.available.begin(), request.available.end());
  }));
}

TEST_F(DeviceChooserTest, TakesReusableDevicesFirstAndAsksNothingIfTheyAreEnough) {
  ChoiceInput input = Board(2);
  input.available = {"a", "b"};
  input.reusable = {"g", "h"};
  EXPECT_THAT(ChooseOk(input), ElementsAre("g", "h"));
  EXPECT_THAT(asked_, IsEmpty());
}

TEST_F(DeviceChooserTest, NamesReusableDevicesAsMustIncludeAndAsksForTheTotal) {
  ChoiceInput input = Board(3);
  input.available = {"a", "b", "c"};
  input.reusable = {"g"};
  answer_ = std::vector<std::string>{"b", "c"};  // without the must-include: taken all the same
  EXPECT_THAT(ChooseOk(input), ElementsAre("b", "c", "g"));
  ASSERT_THAT(asked_, SizeIs(1));
  EXPECT_THAT(asked_[0].available, UnorderedElementsAre("a", "b", "c", "g"));
  EXPECT_THAT(asked_[0].must_include, ElementsAre("g"));
  EXPECT_EQ(asked_[0].size, 3);
}

TEST_F(DeviceChooserTest, ReusableDevicesCountInTheRequestAboutAlignedOnes) {
  ChoiceInput input = Board(2);
  input.available = {"a", "b", "c", "e"};
  input.reusable = {"g"};
  input.numa_affinity = {0};
  answer_ = std::vector<std::string>{"g", "c"};
  EXPECT_THAT(ChooseOk(input), ElementsAre("c", "g"));
  EXPECT_THAT(asked_.at(0).available, UnorderedElementsAre("a", "b", "c", "g"));
}

TEST_F(DeviceChooserTest, FailsWithoutAskingIfTooFewAreAvailable) {
  ChoiceInput input = Board(3);
  input.available = {"a", "b"};
  const Status status = Choose(input).status();
  EXPECT_EQ(status.message(),
            "requested number of devices unavailable for v/gpu. Requested: 3, Available: 2");
  EXPECT_THAT(asked_, IsEmpty());
}

TEST_F(DeviceChooserTest, AnErrorOfThePluginIsAnError) {
  answer_ = absl::InternalError("NVLink");
  EXPECT_THAT(Choose(Board(2)).status().message(), HasSubstr("NVLink"));
}

TEST_F(DeviceChooserTest, ChoosesAtRandomIfThePluginOffersNoPreference) {
  offers_ = false;
  std::set<DeviceIds> seen;
  for (int i = 0; i < 50; ++i) seen.insert(ChooseOk(Board(2)));
  EXPECT_GT(seen.size(), 5U);
}

}  // namespace
}  // namespace switchyard::sim
