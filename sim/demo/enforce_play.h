// SPDX-License-Identifier: Apache-2.0
#pragma once

// Plays the enforce scenarios in the background, a few at a time, each on a node of its own with an
// agent of its own: one that waits for a grace time holds up no other. Their texts come in order.

#include <atomic>
#include <future>
#include <string>
#include <vector>

#include "sim/demo/demo.h"
#include "sim/demo/enforce_scenarios.h"

namespace switchyard::sim {

struct EnforcePlayed {
  std::string text;
  int wrong = 0;
  Status status;  // an error: it could not be played to its end
};

class EnforcePlay {
 public:
  // Begins. `first_number`: of the first scenario.
  EnforcePlay(DemoOptions options, std::vector<EnforceScenario> scenarios, int first_number);
  ~EnforcePlay();  // those that run are played to their end, no others begun
  EnforcePlay(const EnforcePlay&) = delete;
  EnforcePlay& operator=(const EnforcePlay&) = delete;

  [[nodiscard]] size_t size() const { return scenarios_.size(); }
  // Of the next scenario, once it was played. At most size() times; one thread.
  [[nodiscard]] EnforcePlayed Next() { return played_[next_++].get_future().get(); }

 private:
  void Work();

  const DemoOptions options_;
  const std::vector<EnforceScenario> scenarios_;
  const int first_number_;
  std::vector<std::promise<EnforcePlayed>> played_;
  size_t next_ = 0;                // to be printed
  std::atomic<size_t> begun_ = 0;  // to be played
  std::vector<std::future<void>> workers_;
};

}  // namespace switchyard::sim
