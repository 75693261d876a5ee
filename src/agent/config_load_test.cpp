// SPDX-License-Identifier: Apache-2.0
#include "agent/config_load.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "agent/config_keys.h"

namespace switchyard::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ConfigInput FileInput(const std::string& yaml) {
  ConfigInput input;
  input.file_name = "f.yaml";
  input.file = yaml;
  return input;
}

// One line for each error; "" if the configuration is good.
std::string ErrorOf(const ConfigInput& input) {
  return std::string(LoadConfig(input).status().message());
}
std::string ErrorOf(const std::string& yaml) { return ErrorOf(FileInput(yaml)); }

std::string ValueOf(const LoadedConfig& loaded, const std::string& name) {
  const Key* key = FindKey(name);
  return key == nullptr ? "no such key" : JoinValue(*key, key->get(loaded.config));
}

struct Sample {
  const char* default_text;
  const char* yaml;  // another value, as YAML
  const char* text;  // the same, as a flag or variable says it
};

// The design's keys and defaults, and one other value of each.
const std::map<std::string, Sample>& Samples() {
  static const auto* samples = new std::map<std::string, Sample>{
      {"consumer", {"kubevirt", "kata", "kata"}},
      {"fabric.mode", {"off", "advise", "advise"}},
      {"fabric.address", {"127.0.0.1:6666", "unix:/run/fm", "unix:/run/fm"}},
      {"fabric.library", {"", "/opt/libnvfm.so.1", "/opt/libnvfm.so.1"}},
      {"fabric.policy", {"pack", "lowest-id", "lowest-id"}},
      {"fabric.timeout", {"15s", "1s500ms", "1s500ms"}},
      {"fabric.probeInterval", {"15s", "1m30s", "1m30s"}},
      {"fabric.restart", {"auto", "warm", "warm"}},
      {"fabric.moduleMap",
       {"/run/nvidia-fabricmanager/gpu-pci-module-mapping.json,"
        "/var/lib/switchyard/module-map.json",
        "[/a, /b]", "/a,/b"}},
      {"allocate.wait", {"5s", "0s", "0s"}},
      {"tenancy.grace", {"1m", "2m", "2m"}},
      {"kubernetes.nodeName", {"", "n1.example", "n1.example"}},
      {"resources.names", {"", "{\"0x2330\": A, 0x2331: B}", "0x2330=A,0x2331=B"}},
      {"resources.aliases.gpu", {"", "vgpu", "vgpu"}},
      {"resources.aliases.nvswitch", {"", "sw", "sw"}},
      {"paths.hostRoot", {"/", "/host", "/host"}},
      {"paths.devicePlugins", {"/var/lib/kubelet/device-plugins", "/dp", "/dp"}},
      {"paths.kubeletRoot", {"/var/lib/kubelet", "/k", "/k"}},
      {"paths.state", {"/var/lib/switchyard", "/s", "/s"}},
      {"paths.cdi", {"/var/run/cdi", "/c", "/c"}},
      {"paths.socket", {"/run/switchyard/agent.sock", "/x.sock", "/x.sock"}},
      {"paths.pciIds", {"/usr/share/misc/pci.ids", "/p", "/p"}},
      {"paths.nvml", {"", "/n.so", "/n.so"}},
      {"paths.serviceAccount", {"/var/run/secrets/kubernetes.io/serviceaccount", "/t", "/t"}},
      {"http.address", {"127.0.0.1:9417", "\"[::]:1\"", "[::]:1"}},
      {"log.format", {"text", "json", "json"}},
      {"log.level", {"info", "debug", "debug"}}};
  return *samples;
}

// "a.b.c" and a value as a nested document; the value stands on the last line.
std::string Nested(const std::string& name, const std::string& yaml) {
  std::string text;
  std::string indent;
  const std::vector<std::string> parts = absl::StrSplit(name, '.');
  for (const std::string& part : parts) {
    absl::StrAppend(&text, text.empty() ? "" : "\n", indent, part, ":");
    indent += "  ";
  }
  return absl::StrCat(text, " ", yaml, "\n");
}

// Only `name` differs from the defaults, and it comes from `origin`.
void ExpectOnly(const Result<LoadedConfig>& loaded, const std::string& name,
                const std::string& origin) {
  ASSERT_TRUE(loaded.ok()) << name << ": " << loaded.status();
  for (const Key& key : Keys()) {
    const std::string key_name(key.name);
    const Sample& sample = Samples().at(key_name);
    const bool is_it = key_name == name;
    if (!is_it && name == "consumer" && absl::StartsWith(key_name, "resources.aliases")) continue;
    EXPECT_EQ(ValueOf(*loaded, key_name), is_it ? sample.text : sample.default_text) << key_name;
    EXPECT_EQ(loaded->origins.at(key_name).back(), is_it ? origin : "default") << key_name;
  }
}

TEST(ConfigKeysTest, AreTheDesigns) {
  std::map<std::string, std::string> defaults;
  for (const Key& key : Keys()) {
    defaults[std::string(key.name)] = JoinValue(key, key.get(Config{}));
    EXPECT_FALSE(key.doc.empty()) << key.name;
    EXPECT_FALSE(key.type.empty()) << key.name;
  }
  std::map<std::string, std::string> expected;
  for (const auto& [name, sample] : Samples()) expected[name] = sample.default_text;
  EXPECT_EQ(defaults, expected);
}

TEST(ConfigKeysTest, HaveAFlagAndAVariableEach) {
  EXPECT_EQ(FlagName(*FindKey("fabric.probeInterval")), "--fabric-probe-interval");
  EXPECT_EQ(EnvironmentName(*FindKey("fabric.probeInterval")), "SWITCHYARD_FABRIC_PROBE_INTERVAL");
  EXPECT_EQ(FlagName(*FindKey("resources.aliases.gpu")), "--resources-aliases-gpu");
  EXPECT_EQ(EnvironmentName(*FindKey("consumer")), "SWITCHYARD_CONSUMER");
}

TEST(ConfigLoadTest, EveryKeyFromTheFile) {
  for (const auto& [name, sample] : Samples()) {
    const std::string yaml = Nested(name, sample.yaml);
    const auto line = std::count(yaml.begin(), yaml.end(), '\n');
    ExpectOnly(LoadConfig(FileInput(yaml)), name, absl::StrCat("f.yaml:", line));
  }
}

TEST(ConfigLoadTest, EveryKeyFromTheEnvironment) {
  for (const auto& [name, sample] : Samples()) {
    ConfigInput input;
    const std::string variable = EnvironmentName(*FindKey(name));
    input.environment[variable] = sample.text;
    ExpectOnly(LoadConfig(input), name, absl::StrCat("environment ", variable));
  }
}

TEST(ConfigLoadTest, EveryKeyFromAFlag) {
  for (const auto& [name, sample] : Samples()) {
    ConfigInput input;
    input.flags = {{name, sample.text}};
    ExpectOnly(LoadConfig(input), name, absl::StrCat("flag ", FlagName(*FindKey(name))));
  }
}

TEST(ConfigLoadTest, FlagsBeatTheEnvironmentBeatsTheFileBeatsThePredecessors) {
  ConfigInput input = FileInput("consumer: kata\nfabric:\n  policy: pack\n  address: 10.0.0.1:1\n");
  input.environment = {{"ENABLE_FABRIC_MANAGER", "true"},
                       {"FM_ADDRESS", "10.0.0.9:9"},
                       {"SWITCHYARD_FABRIC_ADDRESS", "10.0.0.2:2"}};
  input.flags = {{"fabric.address", "10.0.0.3:3"}};
  const auto loaded = LoadConfig(input);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->config.fabric.address.ToString(), "10.0.0.3:3");
  EXPECT_THAT(loaded->origins.at("fabric.address"),
              ElementsAre("default", "environment FM_ADDRESS", "f.yaml:4",
                          "environment SWITCHYARD_FABRIC_ADDRESS", "flag --fabric-address"));
  EXPECT_EQ(loaded->config.fabric.policy, fabric::Policy::kPack);
  EXPECT_EQ(loaded->config.fabric.mode, tenancy::FabricMode::kAdvise);
  input.flags.clear();
  EXPECT_EQ(LoadConfig(input)->config.fabric.address.ToString(), "10.0.0.2:2");
  input.environment.erase("SWITCHYARD_FABRIC_ADDRESS");
  EXPECT_EQ(LoadConfig(input)->config.fabric.address.ToString(), "10.0.0.1:1");
}

TEST(ConfigLoadTest, KataHasItsOwnAliases) {
  const auto kata = LoadConfig(FileInput("consumer: kata\nresources: {aliases: {gpu: mine}}\n"));
  ASSERT_TRUE(kata.ok());
  EXPECT_EQ(kata->config.resources.gpu_alias, "mine");
  EXPECT_EQ(kata->config.resources.nvswitch_alias, "nvswitch");
  EXPECT_EQ(kata->origins.at("resources.aliases.nvswitch").back(), "default of kata");
  const auto per_model =
      LoadConfig(FileInput("consumer: kata\nresources: {aliases: {gpu: \"\"}}\n"));
  EXPECT_EQ(per_model->config.resources.gpu_alias, "");
}

TEST(ConfigLoadTest, EmptyFilesAndSectionsAreFine) {
  for (const char* yaml :
       {"", "# nothing\n", "fabric:\n", "fabric: {}\n", "fabric:\n  # mode: off\n",
        "resources: {names: {}, aliases: {}}\n", "fabric: {moduleMap: []}\n"}) {
    EXPECT_EQ(ErrorOf(yaml), "") << yaml;
  }
}

struct BadFile {
  const char* yaml;
  const char* error;  // the whole of it
};

class BadFileTest : public ::testing::TestWithParam<BadFile> {};

TEST_P(BadFileTest, IsNamedWithPlaceKeyValueAndRule) {
  EXPECT_EQ(ErrorOf(GetParam().yaml), GetParam().error);
}

INSTANTIATE_TEST_SUITE_P(
    ConfigLoadTest, BadFileTest,
    ::testing::Values(
        BadFile{"fabric:\n  probInterval: 15s\n",
                "f.yaml:2: fabric.probInterval: unknown key; the nearest valid one is "
                "fabric.probeInterval"},
        BadFile{"fabrik: {mode: off}\n",
                "f.yaml:1: fabrik: unknown key; the nearest valid one is fabric"},
        BadFile{"policy: pack\n",
                "f.yaml:1: policy: unknown key; the nearest valid one is fabric.policy"},
        BadFile{
            "fabric.mode: advise\n",
            "f.yaml:1: fabric.mode: unknown key; the nearest valid one is fabric.mode (sections "
            "are nested, not dotted)"},
        BadFile{"resources: {aliases: {gpus: x}}\n",
                "f.yaml:1: resources.aliases.gpus: unknown key; the nearest valid one is "
                "resources.aliases.gpu"},
        BadFile{"fabric: {timeout: 15}\n",
                "f.yaml:1: fabric.timeout: \"15\" is no duration: write 15s, 1m30s or 500ms"},
        BadFile{"fabric: {timeout: 1h}\n",
                "f.yaml:1: fabric.timeout: \"1h\" is out of range: 10ms to 5m"},
        BadFile{"fabric: {probeInterval: 0s}\n",
                "f.yaml:1: fabric.probeInterval: \"0s\" is out of range: 10ms to 1h"},
        BadFile{"fabric: {mode: on}\n",
                "f.yaml:1: fabric.mode: \"on\" is not one of off | advise | enforce"},
        BadFile{"fabric: {policy: [pack]}\n",
                "f.yaml:1: fabric.policy: must be a single value (pack | lowest-id), not a list"},
        BadFile{
            "fabric: {mode: }\n",
            "f.yaml:1: fabric.mode: must be a single value (off | advise | enforce), not nothing"},
        BadFile{"fabric: {moduleMap: /a}\n",
                "f.yaml:1: fabric.moduleMap: must be a list (list of absolute paths), not a single "
                "value"},
        BadFile{"fabric: {moduleMap: [/a, [/b]]}\n",
                "f.yaml:1: fabric.moduleMap: its entries must be single values, not a list"},
        BadFile{"fabric: {moduleMap: [a]}\n",
                "f.yaml:1: fabric.moduleMap: \"a\" is no absolute path: it must begin with /"},
        BadFile{"fabric: {moduleMap: [/a, /a]}\n",
                "f.yaml:1: fabric.moduleMap: \"/a\" is in the list twice"},
        BadFile{"fabric: on\n", "f.yaml:1: fabric: must be a map of keys, not a single value"},
        BadFile{"log:\n  level: info\n  level: debug\n",
                "f.yaml:3: log.level is set twice: line 2 has it too"},
        BadFile{"log: {level: info}\nlog: {format: text}\n",
                "f.yaml:2: log is set twice: line 1 has it too"},
        BadFile{"resources: {names: {\"0x2330\": A, \"0x2330\": B}}\n",
                "f.yaml:1: resources.names: \"0x2330\" is set twice: line 1 has it too"},
        BadFile{"resources: {names: {0x23ab: A, 0x23AB: B}}\n",
                "f.yaml:1: resources.names: \"0x23AB\" is named twice"},
        BadFile{"resources: {names: {H100: A}}\n",
                "f.yaml:1: resources.names: \"H100\" is no PCI device id: write 0x and four "
                "hexadecimal digits, like 0x2330"},
        BadFile{"resources: {names: {0x2330: nvidia.com/x}}\n",
                "f.yaml:1: resources.names: 0x2330: \"nvidia.com/x\" is no resource name: 1 to 63 "
                "letters, digits, - _ and ., a letter or digit at both ends, without "
                "\"nvidia.com/\""},
        BadFile{"resources: {names: {0x2330: {a: b}}}\n",
                "f.yaml:1: resources.names: \"0x2330\" must have a single value, not a map"},
        BadFile{"resources: {aliases: {gpu: same, nvswitch: same}}\n",
                "f.yaml:1: resources.aliases.nvswitch: \"same\" is the name of the GPUs too: give "
                "GPUs and NVSwitches different names"},
        BadFile{"consumer: kata\nresources: {names: {0x2330: 3D}}\n",
                "f.yaml:2: resources.names: \"3D\" must begin with a letter: consumer kata uses it "
                "in CDI"},
        BadFile{"paths: {state: lib}\n",
                "f.yaml:1: paths.state: \"lib\" is no absolute path: it must begin with /"},
        BadFile{"paths: {state: \"\"}\n",
                "f.yaml:1: paths.state: \"\" is no absolute path: it must begin with /"},
        BadFile{
            "http: {address: localhost:80}\n",
            "f.yaml:1: http.address: \"localhost:80\" is no address to listen on: write IP:PORT, "
            "like 127.0.0.1:9417, 0.0.0.0:9417 or [::1]:9417 (no host names)"},
        BadFile{"- a\n", "f.yaml:1: the file must be a map of keys, like \"consumer: kubevirt\""},
        BadFile{"consumer: docker\nlog: {level: loud}\n",
                "f.yaml:1: consumer: \"docker\" is not one of kubevirt | kata\n"
                "f.yaml:2: log.level: \"loud\" is not one of debug | info | warning | error"}));

TEST(ConfigLoadTest, FabricManagersAddressIsChecked) {
  EXPECT_THAT(ErrorOf("fabric: {address: localhost}\n"),
              HasSubstr("f.yaml:1: fabric.address: Fabric Manager's address \"localhost\""));
}

TEST(ConfigLoadTest, SocketPathsFitTheKernel) {
  const std::string path = "/" + std::string(107, 's');
  EXPECT_THAT(ErrorOf("paths: {socket: " + path + "}\n"), HasSubstr("at most 107 bytes"));
  EXPECT_EQ(ErrorOf("paths: {socket: " + path.substr(0, 107) + "}\n"), "");
}

TEST(ConfigLoadTest, HostileKeysAreBoundedAndEscaped) {
  const std::string error = ErrorOf("\"a\\nb" + std::string(5000, 'x') + "\": 1\n");
  EXPECT_LT(error.size(), 300u);
  EXPECT_EQ(error.find('\n'), std::string::npos);
}

TEST(ConfigLoadTest, ErrorsAreBounded) {
  std::string yaml;
  for (int i = 0; i < 500; ++i) absl::StrAppend(&yaml, "x", i, ": 1\n");
  const std::vector<std::string> lines = absl::StrSplit(ErrorOf(yaml), '\n');
  EXPECT_EQ(lines.size(), kMaxErrors);
}

TEST(ConfigLoadTest, UnknownVariablesAreErrorsButServiceLinksAreNot) {
  ConfigInput input;
  input.environment = {{"SWITCHYARD_FABRIC_PROBE_INTERVALL", "15s"}};
  EXPECT_EQ(ErrorOf(input),
            "environment SWITCHYARD_FABRIC_PROBE_INTERVALL: unknown; the nearest valid one is "
            "SWITCHYARD_FABRIC_PROBE_INTERVAL");
  // What kubelet adds for Services "switchyard" and "switchyard-metrics".
  input.environment = {{"SWITCHYARD_SERVICE_HOST", "10.0.0.1"},
                       {"SWITCHYARD_SERVICE_PORT", "9417"},
                       {"SWITCHYARD_SERVICE_PORT_HTTP", "9417"},
                       {"SWITCHYARD_PORT", "tcp://10.0.0.1:9417"},
                       {"SWITCHYARD_PORT_9417_TCP", "tcp://10.0.0.1:9417"},
                       {"SWITCHYARD_METRICS_SERVICE_HOST", "10.0.0.1"},
                       {"SWITCHYARDX", "1"}};
  EXPECT_EQ(ErrorOf(input), "");
}

TEST(ConfigLoadTest, VariablesAndFlagsNameThemselves) {
  ConfigInput input;
  input.environment = {{"SWITCHYARD_LOG_LEVEL", "loud"}};
  input.flags = {{"fabric.timeout", "15"}, {"resources.names", "0x2330"}};
  EXPECT_EQ(ErrorOf(input),
            "environment SWITCHYARD_LOG_LEVEL: log.level: \"loud\" is not one of debug | info | "
            "warning | error\n"
            "flag --fabric-timeout: fabric.timeout: \"15\" is no duration: write 15s, 1m30s or "
            "500ms\n"
            "flag --resources-names: resources.names: \"0x2330\" has no =: write "
            "KEY=VALUE,KEY=VALUE");
}

TEST(ConfigLoadTest, AMissingFileIsNamed) {
  EXPECT_THAT(ReadConfigInput("/nowhere/f.yaml").status().message(), HasSubstr("/nowhere/f.yaml"));
}

}  // namespace
}  // namespace switchyard::agent
