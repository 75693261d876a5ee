// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests: what a process at its limit of PIDs sees. Header-only, without GoogleTest.

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <thread>

namespace switchyard::testing {

// From now on the calling thread can start no other: clone(2) and clone3(2) are EAGAIN. False: this
// kernel has no such filter.
inline bool ForbidThreads() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAGAIN),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program{sizeof(filter) / sizeof(filter[0]), filter};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// Runs `body` on a thread that can start no other. False: it was not run, see ForbidThreads.
template <typename Body>
bool WithoutThreads(Body body) {
  bool forbidden = false;
  std::thread([&] {
    forbidden = ForbidThreads();
    if (forbidden) body();
  }).join();
  return forbidden;
}

}  // namespace switchyard::testing
