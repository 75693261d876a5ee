// SPDX-License-Identifier: Apache-2.0
#pragma once

// Messages over the stream socket between the agent and its helper: a length of four bytes in the
// machine's own order (both ends are one binary), then that many bytes of text. One thread at a
// time for each direction.

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status.h"

namespace switchyard::fabric {

inline constexpr std::size_t kMaxMessageBytes = 4u << 20;

// An end of the channel; `fd` is borrowed. `deadline` is of RealClock::Monotonic: the other end is
// a process, so only real time bounds it. Errors: kDeadlineExceeded; kUnavailable if the other end
// is closed; kDataLoss if a length is above kMaxMessageBytes; kInternal otherwise.
[[nodiscard]] Status SendMessage(int fd, absl::string_view text, absl::Duration deadline);
[[nodiscard]] Result<std::string> ReceiveMessage(int fd, absl::Duration deadline);

// True if the other end is closed.
[[nodiscard]] bool IsHungUp(int fd);

}  // namespace switchyard::fabric
