// SPDX-License-Identifier: Apache-2.0
#pragma once

// tests/data/kubelet-scenarios.json, which the tests on a real Kubernetes read too; the file says
// itself what it means. Strict: an unknown, missing or doubled key is an error that names scenario,
// step and key. Values; any thread.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"

namespace switchyard::sim {

struct ScenarioContainer {
  std::string name = {};
  int gpus = 0;
  int things = 0;
  bool init = false;
  bool restartable = false;
};

// Of each kind of step only its own keys are set.
struct ScenarioStep {
  std::string action = {};  // the key "do"
  std::string pod = {}, container = {}, reason = {}, message = {}, partition = {};
  std::string of = {}, relation = {}, to = {};
  std::string resource = {};
  std::string plugin = {}, refused = {};
  std::vector<ScenarioContainer> containers = {};  // init containers first
  std::vector<std::string> devices = {};
  std::map<std::string, std::map<std::string, int>> pods = {};
  int count = 0, capacity = 0, allocatable = 0, preferred = 0, allocate = 0, module = 0;
};

struct Scenario {
  std::string name = {};
  std::string topology_policy = {};  // empty: none
  bool advise_only = false;          // the key "mode"
  std::vector<ScenarioStep> steps = {};
};

struct ScenarioFile {
  std::string board = {};
  std::string gpu = {};              // resource of the agent
  std::string gpu_environment = {};  // what it calls a container's GPUs
  std::string thing = {};            // resource of the test's own plugins
  std::vector<Scenario> scenarios = {};
};

// `name` begins every error.
[[nodiscard]] Result<ScenarioFile> ParseScenarios(const std::string& text, const std::string& name);

}  // namespace switchyard::sim
