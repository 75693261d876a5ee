// SPDX-License-Identifier: Apache-2.0
// A key that nobody reads would be a check that nobody does.
#include "tests/node/scenario_file.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"

namespace switchyard::sim {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string File(const std::string& scenario) {
  return absl::StrCat(R"({"about": [], "board": "b", "gpu": "g", "gpuEnvironment": "e",
                          "thing": "t", "scenarios": [)",
                      scenario, "]}");
}

std::string ErrorOf(const std::string& scenario) {
  const auto file = ParseScenarios(File(scenario), "f.json");
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
              AllOf(HasSubstr("scenarios[0] (n).topologyPolicy"), HasSubstr("single-numa-node")));
}

TEST(ScenarioFileTest, AScenarioIsForBothModesUnlessItSaysAdvise) {
  const auto with = [](const char* mode) {
    return absl::StrCat(R"({"name": "n", "about": "a", )", mode,
                        R"("steps": [{"do": "stop-agent"}]})");
  };
  const auto advise_only = [&](const char* mode) {
    const auto file = ParseScenarios(File(with(mode)), "f.json");
    EXPECT_TRUE(file.ok()) << file.status();
    return file.ok() && file->scenarios[0].advise_only;
  };
  EXPECT_FALSE(advise_only(""));
  EXPECT_TRUE(advise_only(R"("mode": "advise", )"));
  for (const char* value : {"enforce", "", "both", "Advise"}) {
    EXPECT_EQ(
        ErrorOf(with(absl::StrCat("\"mode\": \"", value, "\", ").c_str())),
        absl::StrCat("f.json: scenarios[0] (n).mode: \"", value,
                     "\" is not \"advise\"; leave it out if the scenario is for enforce too"));
  }
  EXPECT_THAT(ErrorOf(with(R"("mode": null, )")), HasSubstr("scenarios[0] (n).mode"));
  EXPECT_THAT(ErrorOf(with(R"("modes": "advise", )")), HasSubstr("unknown key \"modes\""));
}

}  // namespace
}  // namespace switchyard::sim
