// SPDX-License-Identifier: Apache-2.0
// The main job: pods land on exact partitions, and get what their contract promises.

#include <gmock/gmock.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "tests/node/node_test.h"

namespace switchyard::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class PlacementTest : public NodeTest {
 protected:
  void Up(SimNodeOptions options = {}, const YamlOverrides& overrides = {}) {
    MakeNode(std::move(options));
    StartAgent(overrides);
    WaitForLog("event=fabric_up");
  }
};

TEST_F(PlacementTest, FourPodsOfTwoGpusEachLandOnAPartition) {
  Up();
  std::set<int> partitions;
  for (const char* name : {"a", "b", "c", "d"}) {
    const PodStatus pod = AddPod(name, 2);
    ASSERT_TRUE(pod.admitted) << pod.message;
    const auto partition = PartitionOf(Modules(pod));
    ASSERT_TRUE(partition.has_value()) << absl::StrJoin(Modules(pod), ",");
    partitions.insert(*partition);
  }
  EXPECT_THAT(partitions, ElementsAre(3, 4, 5, 6));
}

TEST_F(PlacementTest, EveryBoardPlacesPairsQuadsAndSingles) {
  for (const char* board : {"hgx-b200", "hgx-a100-16", "hgx-2"}) {
    Up({.board = board});
    for (const auto& [name, size] :
         std::vector<std::pair<std::string, int>>{{"a", 1}, {"b", 4}, {"c", 2}}) {
      const PodStatus pod = AddPod(name, size);
      ASSERT_TRUE(pod.admitted) << board << ": " << pod.message;
      EXPECT_TRUE(PartitionOf(Modules(pod)).has_value())
          << board << ", " << size << " GPUs: " << absl::StrJoin(Modules(pod), ",");
    }
    agent_.reset();
    node_.reset();
    std::filesystem::remove_all(folder_);
  }
}

TEST_F(PlacementTest, APodHasTheEnvironmentAndNodesOfTheKubevirtContract) {
  Up();
  const PodStatus pod = AddPod("vm", 2);
  ASSERT_TRUE(pod.admitted) << pod.message;
  const ContainerResult& container = pod.containers[0];
  ASSERT_EQ(container.envs.size(), 1u);
  EXPECT_EQ(container.envs.begin()->first, "PCI_RESOURCE_NVIDIA_COM_GH100_H100_SXM5_80GB");
  EXPECT_THAT(absl::StrSplit(container.envs.begin()->second, ','),
              ::testing::UnorderedElementsAreArray(container.devices.begin()->second));
  std::vector<std::string> expected = {"/dev/vfio/vfio"};
  for (const FunctionState& function : node_->sysfs().functions()) {
    for (const std::string& id : container.devices.begin()->second) {
      if (function.spec.address.ToString() == id) {
        expected.push_back(absl::StrCat("/dev/vfio/", function.group));
      }
    }
  }
  std::vector<std::string> nodes;
  for (const DeviceNode& node : container.nodes) {
    nodes.push_back(node.host_path);
    EXPECT_EQ(node.container_path, node.host_path);
    EXPECT_EQ(node.permissions, "mrw");
  }
  EXPECT_THAT(nodes, ::testing::UnorderedElementsAreArray(expected));
}

TEST_F(PlacementTest, WithIommufdTheKubevirtContractHasBothStacks) {
  Up({.iommufd = true});
  const PodStatus pod = AddPod("vm", 1);
  ASSERT_TRUE(pod.admitted) << pod.message;
  std::vector<std::string> nodes;
  for (const DeviceNode& node : pod.containers[0].nodes) nodes.push_back(node.host_path);
  EXPECT_THAT(nodes, UnorderedElementsAre("/dev/vfio/vfio", "/dev/iommu",
                                          ::testing::MatchesRegex("/dev/vfio/[0-9]+"),
                                          ::testing::StartsWith("/dev/vfio/devices/vfio")));
}

TEST_F(PlacementTest, ASetThatIsNoPartitionIsAdmittedWithAWarningAndCounted) {
  Up();
  for (const BoardDevice& device : node_->board().devices) {
    ASSERT_TRUE(AddPod(absl::StrCat("m", device.module), 1).admitted);
  }
  for (const PodReport& pod : node_->kubelet().Pods()) {
    const std::set<int> modules = Modules(pod.status);
    if (modules == std::set<int>{1} || modules == std::set<int>{2}) {
      ASSERT_TRUE(node_->kubelet().RemovePod(pod.ns, pod.name));
    }
  }
  const PodStatus pod = AddPod("pair", 2);
  ASSERT_TRUE(pod.admitted) << pod.message;
  EXPECT_THAT(Modules(pod), ElementsAre(1, 2));
  WaitForLog("event=no_partition");
  EXPECT_THAT(Get("/metrics"),
              HasSubstr("switchyard_events_total{event=\"no_partition\",severity=\"warning\"} 1"));
}

TEST_F(PlacementTest, TwoContainersOfAPodEachGetTheirOwn) {
  Up();
  PodSpec spec;
  spec.name = "two";
  spec.containers.push_back({"a", false, false, {{Resource(), 2}}});
  spec.containers.push_back({"b", false, false, {{Resource(), 2}}});
  const PodStatus pod = node_->kubelet().AddPod(spec);
  ASSERT_TRUE(pod.admitted) << pod.message;
  ASSERT_EQ(pod.containers.size(), 2u);
  EXPECT_NE(pod.containers[0].envs, pod.containers[1].envs);
  for (const ContainerResult& container : pod.containers) {
    PodStatus alone;
    alone.containers = {container};
    EXPECT_TRUE(PartitionOf(Modules(alone)).has_value()) << container.name;
  }
}

TEST_F(PlacementTest, AnInitContainersGpusServeTheMainContainer) {
  Up();
  PodSpec spec;
  spec.name = "init";
  spec.containers.push_back({"warm-up", true, false, {{Resource(), 2}}});
  spec.containers.push_back({"main", false, false, {{Resource(), 2}}});
  const PodStatus pod = node_->kubelet().AddPod(spec);
  ASSERT_TRUE(pod.admitted) << pod.message;
  ASSERT_EQ(pod.containers.size(), 2u);
  EXPECT_EQ(pod.containers[0].devices, pod.containers[1].devices);
}

TEST_F(PlacementTest, ANumaHintNeverCutsAPartition) {
  Up();
  for (const int node : {0, 1}) {
    PodSpec spec;
    spec.name = absl::StrCat("numa", node);
    spec.containers.push_back({"compute", false, false, {{Resource(), 2}}});
    spec.numa_affinity = std::set<int>{node};
    const PodStatus pod = node_->kubelet().AddPod(spec);
    ASSERT_TRUE(pod.admitted) << pod.message;
    EXPECT_TRUE(PartitionOf(Modules(pod)).has_value()) << absl::StrJoin(Modules(pod), ",");
  }
}

TEST_F(PlacementTest, OffPrefersOneNumaNodeAndNeedsNoFabricManager) {
  MakeNode({.with_fm = false});
  StartAgent({{"fabric.mode", "\"off\""}});
  const PodStatus pod = AddPod("a", 4);
  ASSERT_TRUE(pod.admitted) << pod.message;
  std::set<int> numa_nodes;
  for (const int module : Modules(pod)) {
    numa_nodes.insert(node_->board().devices[static_cast<std::size_t>(module) - 1].numa_node);
  }
  EXPECT_EQ(numa_nodes.size(), 1u);
}

TEST_F(PlacementTest, LowestIdGivesTheOrderOfThePluginItReplaces) {
  Up({}, {{"fabric.policy", "lowest-id"}});
  EXPECT_THAT(Modules(AddPod("a", 1)), ElementsAre(1));
  EXPECT_THAT(Modules(AddPod("b", 1)), ElementsAre(2));  // pack takes 3
}

}  // namespace
}  // namespace switchyard::sim
