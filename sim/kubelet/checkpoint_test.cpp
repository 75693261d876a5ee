// SPDX-License-Identifier: Apache-2.0
#include "sim/kubelet/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "absl/strings/str_replace.h"
#include "k8s_deviceplugin_v1beta1.pb.h"

namespace switchyard::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using Json = nlohmann::json;

Checkpoint Example() {
  Checkpoint checkpoint;
  checkpoint.registered["v/gpu"] = {"a", "b", "c"};
  checkpoint.pods.Insert(7, "main",
                         {.resource = "v/gpu",
                          .devices = {{"a", {}}, {"b", {0, 1}}, {"c", {1}}},
                          .answer = {.envs = {{"PCI", "0000:19:00.0"}},
                                     .annotations = {{"k", "v"}},
                                     .nodes = {{"/dev/vfio/3", "/dev/vfio/3", "mrw"}},
                                     .mounts = {{"/c", "/h", true}},
                                     .cdi_devices = {"v/gpu=a"}}});
  return checkpoint;
}

TEST(Checkpoint, HasKubeletsLayout) {
  const Json json = Json::parse(CheckpointText(Example()));
  EXPECT_TRUE(json.at("Checksum").is_number_unsigned());
  const Json& data = json.at("Data");
  EXPECT_EQ(data.at("RegisteredDevices"), Json({{"v/gpu", {"a", "b", "c"}}}));
  ASSERT_EQ(data.at("PodDeviceEntries").size(), 1u);
  const Json& entry = data.at("PodDeviceEntries")[0];
  EXPECT_EQ(entry.at("PodUID"), "00000000-0000-4000-8000-000000000007");
  EXPECT_EQ(entry.at("ContainerName"), "main");
  EXPECT_EQ(entry.at("ResourceName"), "v/gpu");
  EXPECT_EQ(entry.at("DeviceIDs"), Json({{"-1", {"a"}}, {"0", {"b"}}, {"1", {"b", "c"}}}));
  std::string bytes;
  ASSERT_TRUE(absl::Base64Unescape(entry.at("AllocResp").get<std::string>(), &bytes));
  v1beta1::ContainerAllocateResponse answer;
  ASSERT_TRUE(answer.ParseFromString(bytes));
  EXPECT_EQ(answer.envs().at("PCI"), "0000:19:00.0");
  EXPECT_EQ(answer.devices(0).host_path(), "/dev/vfio/3");
}

TEST(Checkpoint, WithoutPodsItHasNullWhereGoHasNoSlice) {
  EXPECT_THAT(CheckpointText({}), HasSubstr(R"({"PodDeviceEntries":null,"RegisteredDevices":{}})"));
  EXPECT_THAT(ParseCheckpoint(CheckpointText({}))->pods.pods(), IsEmpty());
}

TEST(Checkpoint, ReadsWhatItWrote) {
  const Checkpoint read = ParseCheckpoint(CheckpointText(Example())).value();
  EXPECT_EQ(read.registered, Example().registered);
  const auto allocations = read.pods.OfContainer(7, "main");
  ASSERT_EQ(allocations.size(), 1u);
  const ContainerResult before = MergeAnswers("main", Example().pods.OfContainer(7, "main"));
  const ContainerResult after = MergeAnswers("main", allocations);
  EXPECT_EQ(after.devices, before.devices);
  EXPECT_EQ(after.envs, before.envs);
  EXPECT_EQ(after.annotations, before.annotations);
  EXPECT_EQ(after.nodes, before.nodes);
  EXPECT_EQ(after.mounts, before.mounts);
  EXPECT_EQ(after.cdi_devices, before.cdi_devices);
  ASSERT_EQ(allocations[0].devices.size(), 3u);
  EXPECT_THAT(allocations[0].devices[0].numa_nodes, IsEmpty());
  EXPECT_THAT(allocations[0].devices[1].numa_nodes, UnorderedElementsAre(0, 1));
  EXPECT_THAT(allocations[0].devices[2].numa_nodes, ElementsAre(1));
}

TEST(Checkpoint, RefusesWhatIsDamagedAndTellsARealOneFromIt) {
  const std::string text = CheckpointText(Example());
  for (const std::string& damaged :
       {std::string(), std::string("{}"), text.substr(0, text.size() / 2), std::string("[1]")}) {
    EXPECT_TRUE(absl::IsDataLoss(ParseCheckpoint(damaged).status())) << damaged;
  }
  EXPECT_TRUE(absl::IsFailedPrecondition(
      ParseCheckpoint(absl::StrReplaceAll(text, {{"\"main\"", "\"mail\""}})).status()));
}

TEST(Checkpoint, AMissingFileIsNoError) {
  EXPECT_EQ(ReadCheckpoint("/nonexistent/checkpoint").value().has_value(), false);
}

}  // namespace
}  // namespace switchyard::sim
