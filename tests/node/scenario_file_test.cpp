// SPDX-License-Identifier: Apache-2.0
// A key that nobody reads would be a check that nobody does.
#include "tests/node/scenario_file.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"

namespace switchyard::sim {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string ErrorOf(const std::string& scenario) {
  const auto file = ParseScenarios(
      absl::StrCat(R"({"about": [], "board": "b", "gpu": "g", "gpuEnvironment": "e", "thing": "t",
                      "scenarios": [)",
                   scenario, "]}"),
      "f.json");
  return file.ok() ? "none" : std::string(file.status().message());
}

std::string ErrorOfStep(const std::string& step) {
  return ErrorOf(
      absl::StrCat(R"({"name": "n", "about": "a", "steps": [{"do": "stop-agent"}, )", step, "]}"));
}

TEST(ScenarioFileTest, WhatIsRightIsRead) {
  EXPECT_EQ(ErrorOfStep(R"({"do": "expect-list", "pods": {"a": {"b": 1}}})"), "none");
}

TEST(ScenarioFileTest, ErrorsNameScenarioStepAndKey) {
  const auto at = [](const char* key) {
    return HasSubstr(absl::StrCat("f.json: scenarios[0] (n).steps[1].", key));
  };
  EXPECT_THAT(ErrorOfStep(R"({"do": "fly"})"), at("do"));
  EXPECT_THAT(ErrorOfStep(R"({"do": "expect-admitted"})"), at("pod"));
  EXPECT_THAT(ErrorOfStep(R"({"do": "stop-agent", "pod": "a"})"), at("pod"));
  EXPECT_THAT(ErrorOfStep(R"({"do": "gpu-returns", "modul": 1})"),
              HasSubstr("f.json: scenarios[0] (n).steps[1]: unknown key \"modul\""));
  EXPECT_THAT(ErrorOfStep(R"({"do": "gpu-returns", "module": "1"})"), at("module"));
  EXPECT_THAT(
      ErrorOfStep(R"({"do": "expect-node", "resource": "x", "capacity": 1, "allocatable": 1})"),
      at("resource"));
  EXPECT_THAT(
      ErrorOfStep(R"({"do": "create-pod", "pod": "a", "containers": [{"name": "c", "gpu": 1}]})"),
      at("containers[0]: unknown key \"gpu\""));
  EXPECT_THAT(ErrorOfStep(R"({"do": "stop-agent", "do": "stop-agent"})"), HasSubstr("twice"));
}

TEST(ScenarioFileTest, AScenarioHasANameOfItsOwnAndAKnownPolicy) {
  const std::string one = R"({"name": "n", "about": "a", "steps": [{"do": "stop-agent"}]})";
  EXPECT_THAT(ErrorOf(absl::StrCat(one, ",", one)), HasSubstr("scenarios[1].name"));
  EXPECT_THAT(ErrorOf(R"({"name": "n", "about": "a", "steps": []})"), HasSubstr("steps"));
  EXPECT_THAT(ErrorOf(R"({"name": "n", "about": "a", "topologyPolicy": "x",
                          "steps": [{"do": "stop-agent"}]})"),
              AllOf(HasSubstr("topologyPolicy"), HasSubstr("single-numa-node")));
}

}  // namespace
}  // namespace switchyard::sim
