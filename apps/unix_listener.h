// SPDX-License-Identifier: Apache-2.0
#pragma once

// Whether somebody listens on a unix socket. Connects and closes; doesn't wait.

#include <string>

namespace switchyard::apps {

enum class Listener { kNone, kListens, kNotAllowed };
[[nodiscard]] Listener ProbeSocket(const std::string& path);

}  // namespace switchyard::apps
