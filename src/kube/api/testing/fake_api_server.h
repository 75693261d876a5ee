// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests: an API server behind the transport's seam that keeps what it is sent and answers as it
// is told. Any thread.

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "kube/api/transport.h"

namespace switchyard::kube::api::testing {

class FakeApiServer final : public Transport {
 public:
  struct Call {
    Request request;
    std::string token;
  };
  using Rule = std::function<Result<Answer>(const Call&)>;

  Result<Answer> Send(const Request& request, absl::string_view token) override {
    Rule rule;
    Call call{request, std::string(token)};
    {
      const absl::MutexLock lock(&mutex_);
      if (closed_) return absl::CancelledError("closed");
      calls_.push_back(call);
      rule = rule_;
    }
    return rule(call);
  }
  void Close() override {
    const absl::MutexLock lock(&mutex_);
    closed_ = true;
  }

  // How every call is answered from now on.
  void SetRule(Rule rule) {
    const absl::MutexLock lock(&mutex_);
    rule_ = std::move(rule);
  }
  // Those since the last time.
  std::vector<Call> Take() {
    const absl::MutexLock lock(&mutex_);
    return std::exchange(calls_, {});
  }

 private:
  absl::Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Call> calls_ ABSL_GUARDED_BY(mutex_);
  Rule rule_ ABSL_GUARDED_BY(mutex_) = [](const Call& call) {
    return Answer{call.request.method == Method::kPost ? 201 : 200, "{}", {}};
  };
};

}  // namespace switchyard::kube::api::testing
