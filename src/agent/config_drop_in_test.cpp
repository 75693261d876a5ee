// SPDX-License-Identifier: Apache-2.0
// What users of the two replaced plugins have in their manifests.
#include <gmock/gmock.h>

#include "agent/config_load.h"

namespace switchyard::agent {
namespace {

using tenancy::FabricMode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Result<LoadedConfig> Load(const std::string& yaml, const Environment& environment) {
  ConfigInput input;
  input.file_name = "f";
  input.file = yaml;
  input.environment = environment;
  return LoadConfig(input);
}

constexpr char kKata[] = "consumer: kata\n";

TEST(KubevirtEnvironmentTest, EnabledMeansEnforceOverTheUnixSocket) {
  const auto loaded = Load("", {{"ENABLE_FABRIC_MANAGER", "true"}});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->config.fabric.mode, FabricMode::kEnforce);
  EXPECT_EQ(loaded->config.fabric.address.ToString(), "unix:/run/nvidia-fabricmanager/socket");
  const auto elsewhere =
      Load("fabric: {address: 10.0.0.1:1}\n", {{"ENABLE_FABRIC_MANAGER", "true"}});
  ASSERT_TRUE(elsewhere.ok()) << elsewhere.status();
  EXPECT_EQ(elsewhere->config.fabric.address.ToString(), "10.0.0.1:1");
}

TEST(KubevirtEnvironmentTest, AModeThatIsSetCounts) {
  const auto loaded = Load("fabric: {mode: advise}\n", {{"ENABLE_FABRIC_MANAGER", "true"}});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->config.fabric.mode, FabricMode::kAdvise);
}

TEST(KubevirtEnvironmentTest, DisabledIsOffAndKatasVariablesMeanNothing) {
  for (const char* text : {"false", ""}) {
    const auto loaded = Load("", {{"ENABLE_FABRIC_MANAGER", text},
                                  {"FM_ADDRESS", "10.0.0.1:1"},
                                  {"FM_ADDRESS_TYPE", "nonsense"},
                                  {"P_GPU_ALIAS", "pgpu"}});
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    EXPECT_EQ(loaded->config.fabric.mode, FabricMode::kOff);
    EXPECT_EQ(loaded->config.fabric.address.ToString(), "127.0.0.1:6666");
    EXPECT_EQ(loaded->config.resources.gpu_alias, "");
  }
}

TEST(NodeNameTest, IsTheManifestsVariableWhateverTheConsumer) {
  for (const char* yaml : {"", kKata}) {
    const auto loaded = Load(yaml, {{"NODE_NAME", "n1.example"}});
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    EXPECT_EQ(loaded->config.node_name, "n1.example");
  }
  const auto said = Load("kubernetes: {nodeName: n2}\n", {{"NODE_NAME", "n1"}});
  ASSERT_TRUE(said.ok()) << said.status();
  EXPECT_EQ(said->config.node_name, "n2");
  EXPECT_THAT(std::string(Load("", {{"NODE_NAME", "N_1"}}).status().message()),
              HasSubstr("environment NODE_NAME: kubernetes.nodeName: \"N_1\" is no node's name"));
}

TEST(KataEnvironmentTest, EnabledIsAdviseWithTheFormerOrder) {
  const auto loaded = Load(kKata, {{"ENABLE_FABRIC_MANAGER", "true"}});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->config.fabric.mode, FabricMode::kAdvise);
  EXPECT_EQ(loaded->config.fabric.policy, fabric::Policy::kLowestId);
  EXPECT_THAT(loaded->origins.at("fabric.policy"),
              ElementsAre("default", "environment ENABLE_FABRIC_MANAGER"));
  EXPECT_THAT(loaded->notes, ElementsAre(HasSubstr("pack is recommended")));
}

TEST(KataEnvironmentTest, NobodyIsAdvisedWhoChoseAPolicy) {
  const auto loaded =
      Load("consumer: kata\nfabric: {policy: pack}\n", {{"ENABLE_FABRIC_MANAGER", "true"}});
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ(loaded->config.fabric.policy, fabric::Policy::kPack);
  EXPECT_THAT(loaded->notes, IsEmpty());
}

TEST(KataEnvironmentTest, TheConsumerMayComeFromTheEnvironmentToo) {
  const auto loaded =
      Load("", {{"SWITCHYARD_CONSUMER", "kata"}, {"ENABLE_FABRIC_MANAGER", "true"}});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->config.fabric.mode, FabricMode::kAdvise);
}

TEST(KataEnvironmentTest, AddressMapAndAliases) {
  const auto loaded = Load(kKata, {{"FM_ADDRESS", "/run/fm"},
                                   {"FM_ADDRESS_TYPE", "unix"},
                                   {"GPU_PCI_MODULE_MAPPING_PATH", "/m.json"},
                                   {"P_GPU_ALIAS", ""},
                                   {"NVSWITCH_ALIAS", "switches"}});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->config.fabric.mode, FabricMode::kOff);
  EXPECT_EQ(loaded->config.fabric.address.ToString(), "unix:/run/fm");
  EXPECT_THAT(loaded->config.fabric.module_map, ElementsAre("/m.json"));
  EXPECT_EQ(loaded->config.resources.gpu_alias, "");
  EXPECT_EQ(loaded->config.resources.nvswitch_alias, "switches");
}

TEST(KataEnvironmentTest, InetIsTheDefaultType) {
  EXPECT_EQ(Load(kKata, {{"FM_ADDRESS", "10.0.0.1:1"}})->config.fabric.address.ToString(),
            "10.0.0.1:1");
  EXPECT_EQ(Load(kKata, {{"FM_ADDRESS", "10.0.0.1:1"}, {"FM_ADDRESS_TYPE", "inet"}})
                ->config.fabric.address.ToString(),
            "10.0.0.1:1");
}

TEST(KataEnvironmentTest, BadValuesNameTheVariable) {
  const auto error = [](const Environment& environment) {
    return std::string(Load(kKata, environment).status().message());
  };
  EXPECT_EQ(error({{"ENABLE_FABRIC_MANAGER", "yes"}}),
            "environment ENABLE_FABRIC_MANAGER: \"yes\" is not one of true | false");
  EXPECT_EQ(error({{"FM_ADDRESS_TYPE", "tcp"}}),
            "environment FM_ADDRESS_TYPE: \"tcp\" is not one of inet | unix");
  EXPECT_EQ(error({{"FM_ADDRESS_TYPE", "unix"}}),
            "environment FM_ADDRESS_TYPE: unix needs the socket's path in FM_ADDRESS");
  EXPECT_THAT(error({{"FM_ADDRESS", "somewhere"}}),
              HasSubstr("environment FM_ADDRESS: fabric.address: "));
  EXPECT_THAT(error({{"P_GPU_ALIAS", "a b"}}),
              HasSubstr("environment P_GPU_ALIAS: resources.aliases.gpu: \"a b\" is no resource"));
  EXPECT_THAT(error({{"GPU_PCI_MODULE_MAPPING_PATH", "m.json"}}),
              HasSubstr("environment GPU_PCI_MODULE_MAPPING_PATH: fabric.moduleMap: \"m.json\""));
}

}  // namespace
}  // namespace switchyard::agent
