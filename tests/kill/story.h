// SPDX-License-Identifier: Apache-2.0
#pragma once

// What happened in a run, and what was wrong: the first thing that is wrong ends it. One thread.

#include <cstdint>
#include <cstdio>
#include <deque>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace switchyard::kill {

enum class Wrong : std::uint8_t {
  kLeaked,  // something stays that nobody has: a partition, a record, a process
  kShared,  // a GPU of two tenants, or joined to another's
  kLost,    // a tenant without its partition, or one that can't be served any more
};

struct Tally {
  int allocations = 0;
  int admitted = 0;
  int refused_undisturbed = 0;
  int kills = 0;
  int helpers = 0;  // that ended with their agent
  int fm_restarts = 0;
  int kubelet_restarts = 0;
  std::map<std::string, int> kills_by_moment = {};
  std::map<Wrong, int> wrong = {};
};

class Story {
 public:
  explicit Story(bool trace) : trace_(trace) {}

  template <typename... Parts>
  void Tell(const Parts&... parts) {
    lines_.push_back(absl::StrCat(Stamp(), absl::StrCat(parts...)));
    if (trace_) std::printf("%s\n", lines_.back().c_str());
    if (lines_.size() > kKept) lines_.pop_front();
  }
  void Found(Wrong wrong, const std::string& what) {
    ++tally.wrong[wrong];
    Tell("WRONG: ", what);
    if (first_.empty()) first_ = what;
  }

  [[nodiscard]] bool broken() const { return !first_.empty(); }
  [[nodiscard]] const std::string& first() const { return first_; }
  [[nodiscard]] const std::deque<std::string>& lines() const { return lines_; }
  [[nodiscard]] absl::Duration Since() const { return absl::Now() - start_; }

  Tally tally;

 private:
  static constexpr std::size_t kKept = 120;

  // The agent's log has the same clock.
  static std::string Stamp() {
    return absl::FormatTime("%H:%M:%E3S ", absl::Now(), absl::UTCTimeZone());
  }

  const bool trace_;
  const absl::Time start_ = absl::Now();
  std::deque<std::string> lines_;
  std::string first_;
};

}  // namespace switchyard::kill
