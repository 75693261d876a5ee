// SPDX-License-Identifier: Apache-2.0
#pragma once

// Asks the running agent, by HTTP over its operator socket. One connection a question.

#include <string>

#include "absl/time/time.h"
#include "base/status.h"

namespace switchyard::apps {

struct OperatorClient {
  std::string socket;                         // paths.socket
  absl::Duration timeout = absl::Seconds(5);  // connect, ask and read together

  // The body of `target`, at most 4 MiB. kNotFound: no agent listens there; kPermissionDenied: only
  // root may ask; kDeadlineExceeded; kUnavailable: the body of an answer with status 503;
  // kFailedPrecondition: the body of one with status 409, a refusal;
  // kInternal: an answer that is none, or another status than 200.
  [[nodiscard]] Result<std::string> Get(const std::string& target) const;
  // Asks for something to be done. The same.
  [[nodiscard]] Result<std::string> Post(const std::string& target) const;
};

}  // namespace switchyard::apps
