// SPDX-License-Identifier: Apache-2.0
#include "tests/node/scenario_file.h"

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "fabric/strict_json.h"

namespace switchyard::sim {
namespace {

using fabric::JsonObject;
using Json = nlohmann::json;

constexpr size_t kMaxBytes = 1 << 20;
constexpr size_t kMaxText = 400;
constexpr int kMaxNumber = 1000;

// What a step has beside "do"; a '?' follows what may be left out.
const std::map<std::string, std::vector<std::string>>& StepKeys() {
  static const std::map<std::string, std::vector<std::string>> keys = {
      {"create-pod", {"pod", "containers", "initContainers?"}},
      {"expect-admitted", {"pod"}},
      {"expect-refused", {"pod", "reason", "message"}},
      {"expect-devices", {"pod", "container", "count", "partition?"}},
      {"expect-handed", {"of", "relation", "to"}},
      {"expect-list", {"pods"}},
      {"expect-unknown", {"pod"}},
      {"expect-node", {"resource", "capacity", "allocatable"}},
      {"expect-calls", {"preferred", "allocate"}},
      {"delete-pod", {"pod"}},
      {"stop-kubelet", {}},
      {"delete-checkpoint", {}},
      {"start-kubelet", {}},
      {"stop-agent", {}},
      {"start-agent", {}},
      {"gpu-vanishes", {"module"}},
      {"gpu-returns", {"module"}},
      {"plugin-listens", {"plugin", "devices"}},
      {"plugin-registers", {"plugin", "refused?"}},
      {"plugin-stream-ends", {"plugin"}},
  };
  return keys;
}

Status CheckWord(const JsonObject& object, const std::string& key, const std::string& word,
                 std::initializer_list<absl::string_view> words) {
  if (std::find(words.begin(), words.end(), word) != words.end()) return OkStatus();
  return object.Bad(key,
                    absl::StrCat(fabric::Quoted(word), " is none of ", absl::StrJoin(words, ", ")));
}

Status ReadContainers(const JsonObject& step, const char* key, bool init,
                      std::vector<ScenarioContainer>& out) {
  ASSIGN_OR_RETURN(const Json* const list, step.Array(key));
  for (size_t i = 0; i < list->size(); ++i) {
    ASSIGN_OR_RETURN(
        const JsonObject object,
        JsonObject::Make((*list)[i], step.name(), absl::StrCat(step.PathOf(key), "[", i, "]"),
                         {"name"}, {"gpus", "things", "restartable"}));
    ScenarioContainer& container = out.emplace_back();
    container.init = init;
    ASSIGN_OR_RETURN(container.name, object.String("name", kMaxText));
    for (const auto& [number, at] :
         {std::pair{"gpus", &container.gpus}, std::pair{"things", &container.things}}) {
      if (!object.Has(number)) continue;
      ASSIGN_OR_RETURN(const std::int64_t value, object.Integer(number, 0, kMaxNumber));
      *at = static_cast<int>(value);
    }
    if (!object.Has("restartable")) continue;
    if (!init) return object.Bad("restartable", "only an init container can be");
    ASSIGN_OR_RETURN(container.restartable, object.Bool("restartable"));
  }
  return OkStatus();
}

Status ReadDevices(const JsonObject& step, std::vector<std::string>& out) {
  ASSIGN_OR_RETURN(const Json* const list, step.Array("devices"));
  for (const Json& device : *list) {
    if (!device.is_string()) return step.Bad("devices", "must be an array of strings");
    out.push_back(device.get<std::string>());
  }
  return OkStatus();
}

Status ReadPods(const JsonObject& step, const Json& value,
                std::map<std::string, std::map<std::string, int>>& out) {
  const Status bad = step.Bad("pods", "must be {\"POD\": {\"CONTAINER\": count}}");
  if (!value.is_object()) return bad;
  for (const auto& [pod, containers] : value.items()) {
    if (!containers.is_object()) return bad;
    out[pod];
    for (const auto& [container, count] : containers.items()) {
      if (!count.is_number_unsigned()) return bad;
      out[pod][container] = count.get<int>();
    }
  }
  return OkStatus();
}

Status CheckKeys(const JsonObject& object, const Json& value, const std::string& action) {
  const auto known = StepKeys().find(action);
  if (known == StepKeys().end()) {
    return object.Bad("do", absl::StrCat(fabric::Quoted(action), " is no step"));
  }
  std::set<std::string> allowed = {"do"};
  for (std::string key : known->second) {
    const bool optional = key.back() == '?';
    if (optional) key.pop_back();
    allowed.insert(key);
    if (!optional && !value.contains(key)) {
      return object.Bad(key, absl::StrCat("missing; ", action, " needs it"));
    }
  }
  for (const auto& [key, ignored] : value.items()) {
    if (!allowed.contains(key)) return object.Bad(key, absl::StrCat("no key of ", action));
  }
  return OkStatus();
}

Result<ScenarioStep> ReadStep(const Json& value, absl::string_view name, const std::string& path) {
  // Which keys it may have depends on "do", so that all of them are let through here.
  ASSIGN_OR_RETURN(
      const JsonObject object,
      JsonObject::Make(value, name, path, {"do"},
                       {"pod",       "containers", "initContainers", "reason",   "message",
                        "container", "count",      "partition",      "of",       "relation",
                        "to",        "pods",       "resource",       "capacity", "allocatable",
                        "preferred", "allocate",   "module",         "plugin",   "devices",
                        "refused"}));
  ScenarioStep step;
  ASSIGN_OR_RETURN(step.action, object.String("do", kMaxText));
  RETURN_IF_ERROR(CheckKeys(object, value, step.action));
  for (const auto& [key, text] :
       std::initializer_list<std::pair<const char*, std::string*>>{{"pod", &step.pod},
                                                                   {"container", &step.container},
                                                                   {"reason", &step.reason},
                                                                   {"message", &step.message},
                                                                   {"partition", &step.partition},
                                                                   {"of", &step.of},
                                                                   {"relation", &step.relation},
                                                                   {"to", &step.to},
                                                                   {"resource", &step.resource},
                                                                   {"plugin", &step.plugin},
                                                                   {"refused", &step.refused}}) {
    if (!object.Has(key)) continue;
    ASSIGN_OR_RETURN(*text, object.String(key, kMaxText));
  }
  for (const auto& [key, number] :
       std::initializer_list<std::pair<const char*, int*>>{{"count", &step.count},
                                                           {"capacity", &step.capacity},
                                                           {"allocatable", &step.allocatable},
                                                           {"preferred", &step.preferred},
                                                           {"allocate", &step.allocate},
                                                           {"module", &step.module}}) {
    if (!object.Has(key)) continue;
    ASSIGN_OR_RETURN(const std::int64_t read, object.Integer(key, 0, kMaxNumber));
    *number = static_cast<int>(read);
  }
  if (object.Has("partition")) {
    RETURN_IF_ERROR(CheckWord(object, "partition", step.partition, {"one", "none"}));
  }
  if (object.Has("relation")) {
    RETURN_IF_ERROR(CheckWord(object, "relation", step.relation,
                              {"equals", "within", "contains", "apart-from"}));
  }
  if (object.Has("resource")) {
    RETURN_IF_ERROR(CheckWord(object, "resource", step.resource, {"gpu", "thing"}));
  }
  if (object.Has("initContainers")) {
    RETURN_IF_ERROR(ReadContainers(object, "initContainers", true, step.containers));
  }
  if (object.Has("containers")) {
    RETURN_IF_ERROR(ReadContainers(object, "containers", false, step.containers));
  }
  if (object.Has("devices")) RETURN_IF_ERROR(ReadDevices(object, step.devices));
  if (object.Has("pods")) RETURN_IF_ERROR(ReadPods(object, value["pods"], step.pods));
  return step;
}

Result<Scenario> ReadScenario(const Json& value, absl::string_view name, const std::string& path) {
  const auto at = [&](const std::string& where) {
    return JsonObject::Make(value, name, where, {"name", "about", "steps"},
                            {"topologyPolicy", "mode"});
  };
  ASSIGN_OR_RETURN(const JsonObject unnamed, at(path));
  Scenario scenario;
  ASSIGN_OR_RETURN(scenario.name, unnamed.String("name", kMaxText));
  const std::string named = absl::StrCat(path, " (", scenario.name, ")");
  ASSIGN_OR_RETURN(const JsonObject object, at(named));
  RETURN_IF_ERROR(object.String("about", kMaxText).status());
  if (object.Has("topologyPolicy")) {
    ASSIGN_OR_RETURN(scenario.topology_policy, object.String("topologyPolicy", kMaxText));
    RETURN_IF_ERROR(CheckWord(object, "topologyPolicy", scenario.topology_policy,
                              {"best-effort", "restricted", "single-numa-node"}));
  }
  if (object.Has("mode")) {
    ASSIGN_OR_RETURN(const std::string mode, object.String("mode", kMaxText));
    if (mode != "advise") {
      return object.Bad("mode", absl::StrCat(fabric::Quoted(mode),
                                             " is not \"advise\"; leave it out if "
                                             "the scenario is for enforce too"));
    }
    scenario.advise_only = true;
  }
  ASSIGN_OR_RETURN(const Json* const steps, object.Array("steps"));
  if (steps->empty()) return object.Bad("steps", "there is none");
  for (size_t i = 0; i < steps->size(); ++i) {
    ASSIGN_OR_RETURN(ScenarioStep step,
                     ReadStep((*steps)[i], name, absl::StrCat(named, ".steps[", i, "]")));
    scenario.steps.push_back(std::move(step));
  }
  return scenario;
}

}  // namespace

Result<ScenarioFile> ParseScenarios(const std::string& text, const std::string& name) {
  ASSIGN_OR_RETURN(const Json json, fabric::ParseStrictJson(text, name, kMaxBytes));
  ASSIGN_OR_RETURN(
      const JsonObject top,
      JsonObject::Make(json, name, "",
                       {"about", "board", "gpu", "gpuEnvironment", "thing", "scenarios"}, {}));
  ScenarioFile file;
  ASSIGN_OR_RETURN(file.board, top.String("board", kMaxText));
  ASSIGN_OR_RETURN(file.gpu, top.String("gpu", kMaxText));
  ASSIGN_OR_RETURN(file.gpu_environment, top.String("gpuEnvironment", kMaxText));
  ASSIGN_OR_RETURN(file.thing, top.String("thing", kMaxText));
  ASSIGN_OR_RETURN(const Json* const scenarios, top.Array("scenarios"));
  std::set<std::string> names;
  for (size_t i = 0; i < scenarios->size(); ++i) {
    const std::string path = absl::StrCat("scenarios[", i, "]");
    ASSIGN_OR_RETURN(Scenario scenario, ReadScenario((*scenarios)[i], name, path));
    if (!names.insert(scenario.name).second) {
      return fabric::BadJson(name, absl::StrCat(path, ".name"), "there is one of that name before");
    }
    file.scenarios.push_back(std::move(scenario));
  }
  return file;
}

}  // namespace switchyard::sim
