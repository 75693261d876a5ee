// SPDX-License-Identifier: Apache-2.0
#pragma once

// Becoming the node's only agent by waiting for the one that is (an upgrade starts the new one
// while the old one serves). While it waits it says who holds the lock, and does nothing else. One
// thread, which must outlive the wait.

#include <functional>
#include <string>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/event.h"
#include "base/file_lock.h"
#include "base/status.h"

namespace switchyard::agent {

struct OwnershipParts {
  Clock* clock;
  EventSink* events;
  Wakeup* wakeup;  // notified from elsewhere when `stopped` has become true
  std::function<bool()> stopped;
};

// How often a waiting agent says again who holds the lock.
inline constexpr absl::Duration kSayAgain = absl::Minutes(10);

// For a lock that was just refused. kDeadlineExceeded after `patience` (may be infinite) names the
// holder; kCancelled when stopped.
[[nodiscard]] Result<FileLock> WaitForOwnership(const std::string& lock_path,
                                                absl::Duration patience,
                                                const OwnershipParts& parts);

}  // namespace switchyard::agent
