// SPDX-License-Identifier: Apache-2.0
#pragma once

// The seam to a Kubernetes API server: one request, one answer. Https (kube/api/https.h) is the
// real one, a test has its own. Blocking and bounded in time and size; one request at a time, Close
// from any thread.

#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/status.h"

namespace switchyard::kube::api {

enum class Method { kGet, kPost, kPatch };

struct Request {
  Method method = Method::kGet;
  std::string path;  // "/api/v1/namespaces/default/events"
  std::string body;  // JSON; a patch is a merge patch. Empty: none
};

struct Answer {
  int status = 0;
  std::string body;
  absl::Duration retry_after;  // zero: the server did not say
};

class Transport {
 public:
  virtual ~Transport() = default;
  // Whatever status the server answers with is an Answer. kUnavailable: it can't be reached or
  // trusted, kDeadlineExceeded: no whole answer in time, kOutOfRange: an answer that is too long,
  // kCancelled: closed.
  [[nodiscard]] virtual Result<Answer> Send(const Request& request, absl::string_view token) = 0;
  // Ends a request that runs; there are none afterwards.
  virtual void Close() = 0;
};

}  // namespace switchyard::kube::api
