// SPDX-License-Identifier: Apache-2.0
#pragma once

// The rate limit of PodResources: `rate` calls a second, `burst` at once. A pure value: the caller
// brings the monotonic time and the lock.

#include <algorithm>

#include "absl/time/time.h"

namespace switchyard::sim {

class TokenBucket {
 public:
  TokenBucket(double rate, double burst, absl::Duration now)
      : rate_(rate), burst_(burst), tokens_(burst), last_(now) {}

  bool Take(absl::Duration now) {
    tokens_ = std::min(burst_, tokens_ + rate_ * absl::ToDoubleSeconds(now - last_));
    last_ = now;
    if (tokens_ < 1) return false;
    tokens_ -= 1;
    return true;
  }

 private:
  double rate_;
  double burst_;
  double tokens_;
  absl::Duration last_;
};

}  // namespace switchyard::sim
