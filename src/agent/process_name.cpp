// SPDX-License-Identifier: Apache-2.0
#include "agent/process_name.h"

#include <sys/prctl.h>

#include <array>

namespace switchyard::agent {

ProcessName::ProcessName(const char* name) {
  std::array<char, 16> before{};  // TASK_COMM_LEN
  ::prctl(PR_GET_NAME, before.data());
  before_ = before.data();
  ::prctl(PR_SET_NAME, name);
}

ProcessName::~ProcessName() { ::prctl(PR_SET_NAME, before_.c_str()); }

}  // namespace switchyard::agent
