// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a restart of Fabric Manager means on this host, and whether one is waiting for the list of
// active partitions. Warm: FM keeps its state and waits 60 s for that list. Cold: every partition
// is inactive, and what a list sent to it would do is undefined; so in doubt it is cold.
// Reads files; any thread.

#include <string>

#include "absl/strings/string_view.h"
#include "base/host_root.h"
#include "base/status.h"

namespace switchyard::fabric {

enum class RestartSetting { kAuto, kWarm, kCold };  // fabric.restart

struct RestartKind {
  bool warm = false;
  std::string why;  // for the log and `doctor`
};

inline constexpr char kFabricManagerConfig[] = "/usr/share/nvidia/nvswitch/fabricmanager.cfg";

// kAuto: warm if `config` (read as written, without the host root) says FABRIC_MODE_RESTART=1, or a
// running nv-fabricmanager was started with --restart. An absent file or process says nothing; a
// file that can't be read or has another value is an error.
[[nodiscard]] Result<RestartKind> FindRestartKind(RestartSetting setting, const std::string& config,
                                                  const HostRoot& root);

// True if the text of a fabricmanager.cfg sets FABRIC_MODE_RESTART to 1. kInvalidArgument names
// file and line of a value that is neither 0 nor 1, or of a second line that says otherwise.
[[nodiscard]] Result<bool> ConfigSaysRestart(absl::string_view text, absl::string_view file_name);

// `command_line`: as in /proc/PID/cmdline, words ending in zero bytes.
[[nodiscard]] bool IsRestartingFabricManager(absl::string_view command_line);

// True if a failed ReadPartitions means that FM waits for the list, should it be a warm one.
// `endpoint_worked`: some read at this address has succeeded (else -4 is FM's internal endpoint).
[[nodiscard]] bool MayWaitForActiveList(const Status& read_error, bool endpoint_worked);

}  // namespace switchyard::fabric
