// SPDX-License-Identifier: Apache-2.0
#pragma once

// getaddrinfo(3) with a deadline. The call itself can't be ended: one that is given up goes on in
// its own thread until the resolver's own timeouts, and the next wait is for it again, so that
// there is never more than one. Wait from one thread, Cancel from any.

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/status.h"

namespace switchyard::kube::api {

// "10.96.0.1", "fd00::1": nothing to look up.
[[nodiscard]] bool IsAddress(const std::string& host);

class NameLookup {
 public:
  explicit NameLookup(std::string host);

  // Addresses as text, at least one. An address is its own answer, without a thread. kUnavailable:
  // no such name, or no thread to be had; kDeadlineExceeded, kCancelled.
  [[nodiscard]] Result<std::vector<std::string>> Wait(absl::Duration timeout);
  void Cancel();

 private:
  // Shared with a thread that may outlive this object.
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    bool running = false;
    bool cancelled = false;
    Result<std::vector<std::string>> found = absl::UnavailableError("not looked up");
  };
  const std::string host_;
  const std::shared_ptr<State> state_;
};

}  // namespace switchyard::kube::api
