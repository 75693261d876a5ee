// SPDX-License-Identifier: Apache-2.0
#pragma once

// Whether somebody listens on a unix socket, and who. Connects and closes; doesn't wait.

#include <sys/types.h>

#include <string>

namespace switchyard::apps {

enum class Listener { kNone, kListens, kNotAllowed };
[[nodiscard]] Listener ProbeSocket(const std::string& path);

// The process that called listen(2) there; 0: nobody, or one of a PID namespace not seen from here.
[[nodiscard]] pid_t ListenerPid(const std::string& path);

}  // namespace switchyard::apps
