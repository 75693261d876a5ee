// SPDX-License-Identifier: Apache-2.0
#pragma once

// What ps shows of an agent that waits for the owner lock, and what `switchyard probe` looks for: a
// waiting agent serves nothing that could be asked. At most 15 characters (TASK_COMM_LEN). Main
// thread only: its name is the process's.

#include <string>

namespace switchyard::agent {

inline constexpr char kWaitingName[] = "switchyard-wait";

// Names the calling thread until its end, then gives it back the name it had.
class ProcessName {
 public:
  explicit ProcessName(const char* name);
  ~ProcessName();
  ProcessName(const ProcessName&) = delete;
  ProcessName& operator=(const ProcessName&) = delete;

 private:
  std::string before_;
};

}  // namespace switchyard::agent
