// SPDX-License-Identifier: Apache-2.0
#pragma once

// What all models of one run share: chance, time, the point at which the agent dies, the first rule
// that was broken, and the story of the run. Single-threaded. A crash is an exception thrown from a
// model's call through the Enforcer, which is then destroyed.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/event.h"
#include "fabric/module_set.h"
#include "tests/enforce/random.h"

namespace switchyard::enforce_sim {

struct Crash {
  const char* where;
};

// What must never happen. The names are what a broken run shows.
enum class Rule : std::uint8_t {
  kTwoTenants,         // 1: a GPU in two live grants, or in two records
  kJoined,             // 2: another active partition touches a tenancy's GPUs
  kTakenWhileHeld,     // 3: deactivated while a member is held
  kNotJournaled,       // 4: actuated without the journal's word
  kForgottenEarly,     // 4: out of the journal before the fabric confirmed
  kReleasedEarly,      // 6: somebody had it, or the grace was not over
  kNotGranted,         // a success whose partition is not active
  kWrongDevice,        // a container was let start on another GPU or a dead partition
  kWrongList,          // an active list sent when none is waited for, or one that cuts somebody off
  kSlow,               // a request took longer than it may
  kLeaked,             // something of ours stays that nobody has
  kRefusedForNothing,  // free GPUs can't be had
  kPlanActed,          // a dry run changed something
  kWrongWord,          // the agent says what is not so
};
[[nodiscard]] const char* RuleName(Rule rule);

// Values as a story shows them; made only when one is told.
inline std::string Show(fabric::ModuleSet modules) { return modules.ToString(); }
template <typename T>
const T& Show(const T& value) {
  return value;
}

// Time that models may watch while it passes.
class ModelClock final : public Clock {
 public:
  absl::Time Now() override { return absl::FromUnixSeconds(1'700'000'000) + Monotonic(); }
  absl::Duration Monotonic() override { return absl::Milliseconds(now_ms); }
  std::int64_t now_ms = 0;

 private:
  bool Wait(Wakeup& /*wakeup*/, absl::Duration /*timeout*/) override { return false; }
};

class Stage {
 public:
  Stage(std::uint64_t seed, bool trace) : random(seed), tracing(trace) {}

  Random random;
  ModelClock clock;
  const bool tracing;
  std::vector<std::string> story;
  std::optional<std::pair<Rule, std::string>> broken;
  std::function<void(std::int64_t)> pass;  // lets so many milliseconds go by, with what they bring

  [[nodiscard]] std::int64_t now() const { return clock.now_ms; }
  template <typename... T>
  void Tell(const T&... parts) {
    if (tracing) story.push_back(absl::StrCat(Stamp(), Show(parts)...));
  }
  // The first one counts.
  template <typename... T>
  void Break(Rule rule, const T&... parts) {
    if (broken) return;
    broken.emplace(rule, absl::StrCat(Show(parts)...));
    Tell("!! ", RuleName(rule), ": ", broken->second);
  }

  // The agent dies at the `points`-th point from here.
  void ArmCrash(int points) { crash_in_ = points; }
  void Disarm() { crash_in_ = 0; }
  // True once: die here, after whatever the call still does.
  [[nodiscard]] bool DiesHere() { return crash_in_ > 0 && --crash_in_ == 0; }
  void Point(const char* where) {
    if (DiesHere()) Die(where);
  }
  [[noreturn]] void Die(const char* where) {
    Tell("the agent is killed: ", where);
    throw Crash{where};
  }

 private:
  [[nodiscard]] std::string Stamp() const;
  int crash_in_ = 0;
};

// The agent's log, in the story.
class StorySink final : public EventSink {
 public:
  explicit StorySink(Stage& stage) : stage_(stage) {}
  void Report(const Event& event) override {
    if (stage_.tracing) stage_.Tell("  agent: ", event.name, ": ", event.message);
  }

 private:
  Stage& stage_;
};

}  // namespace switchyard::enforce_sim
