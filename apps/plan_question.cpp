// SPDX-License-Identifier: Apache-2.0
#include "apps/plan_question.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "agent/config_values.h"
#include "apps/fabric_state.h"
#include "apps/output.h"
#include "base/clock.h"
#include "base/files.h"
#include "fabric/module_map.h"

namespace switchyard::apps {
namespace {

using fabric::ModuleId;
using fabric::ModuleSet;

constexpr size_t kMaxFileBytes = 1024 * 1024;

Status BadOption(absl::string_view option, absl::string_view text, absl::string_view rule) {
  return UsageStatus(absl::StrCat(option, ": ", agent::Quote(text), " ", rule));
}

Result<int> ParseNumber(absl::string_view option, absl::string_view text) {
  int number = 0;
  if (!absl::SimpleAtoi(text, &number) || number < 0) {
    return BadOption(option, text, "is no whole number, 0 or more");
  }
  return number;
}

std::vector<std::string> SplitList(const std::string& text) {
  std::vector<std::string> parts;
  if (absl::StripAsciiWhitespace(text).empty()) return parts;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    parts.emplace_back(absl::StripAsciiWhitespace(part));
  }
  return parts;
}

class Reader {
 public:
  Reader(const Arguments& arguments, PlanQuestion& question)
      : arguments_(arguments), question_(question) {}

  // --size, --policy, --active: alike offline and live.
  Status ReadCommon(fabric::Policy default_policy) {
    ASSIGN_OR_RETURN(question_.request.size, ParseNumber("--size", arguments_.Get("--size")));
    question_.request.policy = default_policy;
    if (const std::string policy = arguments_.Get("--policy"); policy == "lowest-id") {
      question_.request.policy = fabric::Policy::kLowestId;
    } else if (policy == "pack") {
      question_.request.policy = fabric::Policy::kPack;
    } else if (arguments_.Has("--policy")) {
      return BadOption("--policy", policy, "is not one of pack | lowest-id");
    }
    return ReadActive();
  }

  // The modules of a list of module ids and addresses.
  Result<ModuleSet> ReadModules(const std::string& option) const {
    ModuleSet modules;
    for (const std::string& word : SplitList(arguments_.Get(option))) {
      const bool is_address = absl::StrContains(word, ":");
      ASSIGN_OR_RETURN(const ModuleId module,
                       is_address ? ByAddress(option, word) : ById(option, word));
      modules.Insert(module);
    }
    return modules;
  }

 private:
  Status ReadActive() {
    if (!arguments_.Has("--active")) return OkStatus();
    std::vector<fabric::Partition>& partitions = question_.table.partitions;
    for (fabric::Partition& partition : partitions) partition.active = false;
    for (const std::string& word : SplitList(arguments_.Get("--active"))) {
      ASSIGN_OR_RETURN(const int id, ParseNumber("--active", word));
      bool found = false;
      for (fabric::Partition& partition : partitions) {
        if (partition.id == id) partition.active = found = true;
      }
      if (!found) {
        return BadOption("--active", word,
                         absl::StrCat("is no partition here; the partitions are ",
                                      absl::StrJoin(partitions, ", ", [](auto* out, const auto& p) {
                                        absl::StrAppend(out, p.id);
                                      })));
      }
    }
    return OkStatus();
  }

  Result<ModuleId> ByAddress(absl::string_view option, absl::string_view word) const {
    if (!question_.addresses.has_value()) {
      return BadOption(option, word,
                       "is an address, and no module map says where it sits: give --map, or "
                       "module ids");
    }
    const Result<PciAddress> address = PciAddress::Parse(word);
    if (!address.ok()) return BadOption(option, word, address.status().message());
    for (const auto& [module, known] : *question_.addresses) {
      if (known == *address) return module;
    }
    return BadOption(option, word, "is not in the module map");
  }

  Result<ModuleId> ById(absl::string_view option, absl::string_view word) const {
    int module = 0;
    if (!absl::SimpleAtoi(word, &module) || module < fabric::kMinModule ||
        module > fabric::kMaxModule || !question_.table.modules.Contains(module)) {
      return BadOption(option, word,
                       absl::StrCat("is no module of this board; the modules are ",
                                    question_.table.modules.ToString()));
    }
    if (question_.addresses.has_value() && question_.addresses->count(module) == 0) {
      return BadOption(option, word, "has no address in the module map: add it there");
    }
    return module;
  }

  const Arguments& arguments_;
  PlanQuestion& question_;
};

Status ReadMapFile(const std::string& path, PlanQuestion& question) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxFileBytes));
  ASSIGN_OR_RETURN(const fabric::ModuleEntries entries, fabric::ParseModuleMap(text, path));
  question.addresses.emplace();
  for (const auto& [address, module] : entries) question.addresses->emplace(module, address);
  return OkStatus();
}

ModuleSet Mapped(const PlanQuestion& question) {
  if (!question.addresses.has_value()) return question.table.modules;
  ModuleSet modules;
  for (const auto& [module, address] : *question.addresses) modules.Insert(module);
  return modules & question.table.modules;
}

}  // namespace

Result<PlanQuestion> AskOffline(const Arguments& arguments) {
  PlanQuestion question;
  const std::string board = arguments.Get("--board");
  ASSIGN_OR_RETURN(const std::string text, ReadFile(board, kMaxFileBytes));
  ASSIGN_OR_RETURN(question.table, fabric::ParseBoard(text, board));
  if (arguments.Has("--map")) RETURN_IF_ERROR(ReadMapFile(arguments.Get("--map"), question));

  Reader reader(arguments, question);
  RETURN_IF_ERROR(reader.ReadCommon(fabric::Policy::kPack));
  fabric::PlanRequest& request = question.request;
  request.available = Mapped(question);
  if (arguments.Has("--free")) {
    ASSIGN_OR_RETURN(request.available, reader.ReadModules("--free"));
  }
  ASSIGN_OR_RETURN(request.must_include, reader.ReadModules("--must-include"));
  request.busy = question.table.modules - request.available;
  request.usable = question.table.modules;
  return question;
}

Result<PlanQuestion> AskLive(const Arguments& arguments, const agent::Config& config) {
  ASSIGN_OR_RETURN(const FabricState state, ReadFabricState(config));
  if (!state.known) {
    return absl::FailedPreconditionError(absl::StrCat(
        "no partition table is known (fabric mode ", state.mode,
        state.error.empty() ? "" : absl::StrCat(": ", state.error),
        "): set fabric.mode to advise and run `switchyard doctor`, or plan from a --board file"));
  }
  PlanQuestion question;
  question.table = state.table;
  question.addresses.emplace();
  for (const auto& [address, entry] : state.map) question.addresses->emplace(entry.module, address);
  RealClock clock;
  question.note = AgeText(state, clock.Now());

  Reader reader(arguments, question);
  RETURN_IF_ERROR(reader.ReadCommon(config.fabric.policy));
  fabric::PlanRequest& request = question.request;
  request.numa_node = state.numa_node;
  request.usable = state.usable & Mapped(question);
  request.available = request.usable - state.busy;
  if (arguments.Has("--free")) {
    ASSIGN_OR_RETURN(request.available, reader.ReadModules("--free"));
  }
  ASSIGN_OR_RETURN(request.must_include, reader.ReadModules("--must-include"));
  // Without an agent nobody knows who holds what: what is not free counts as busy.
  request.busy =
      (state.live ? state.busy : question.table.modules) - request.available - request.must_include;
  return question;
}

}  // namespace switchyard::apps
