// SPDX-License-Identifier: Apache-2.0
#pragma once

// One call to kubelet's Registration service, which dials back inside it. Run by one thread at a
// time; CancelAll from any.

#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/status.h"

namespace grpc {
class ClientContext;
}

namespace switchyard::kube {

class RegisterCall {
 public:
  struct Options {  // as GetDevicePluginOptions says them; kubelet goes by that call
    bool preferred_available = false;
    bool pre_start_required = false;
  };
  // kubelet's answer. The error names kubelet's socket.
  [[nodiscard]] Status Run(const std::string& kubelet_socket, absl::Duration timeout,
                           const std::string& endpoint, const std::string& resource,
                           const Options& options);

  // Ends the call in flight, and every later one at once.
  void CancelAll();
  [[nodiscard]] bool cancelled() const;

 private:
  mutable absl::Mutex mutex_;
  grpc::ClientContext* running_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace switchyard::kube
