// SPDX-License-Identifier: Apache-2.0
#pragma once

// When one plugin registers with kubelet, as a pure state machine: it is told what there is to see
// and says whether to register now, how long to wait, and what to report. kubelet never calls back
// by itself: whatever goes wrong, the plugin registers again. One thread at a time.

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/status.h"
#include "kube/socket_files.h"

namespace switchyard::kube {

class Registration {
 public:
  struct Options {
    absl::Duration stream_timeout;  // from Register to ListAndWatch
    absl::Duration first_retry;     // doubled with each failure, up to
    absl::Duration max_retry;
  };

  // What there is to see now.
  struct Seen {
    absl::Duration now;               // monotonic
    std::optional<SocketId> kubelet;  // its socket, if there is one
    bool stream_came = false;         // since the last Register began
    bool streaming = false;           // and it is open
  };

  struct Advice {
    bool register_now = false;
    absl::Duration wait;      // until the next look, if nothing happens before
    absl::string_view event;  // to report; empty = nothing
    std::string message;
  };

  explicit Registration(const Options& options) : options_(options) {}

  [[nodiscard]] Advice Look(const Seen& seen);

  // After Register returned.
  void Succeeded(absl::Duration now);
  void Failed(absl::Duration now, const Status& why);
  // Our own socket is a new one: register again at once.
  void Restart();

  [[nodiscard]] bool streaming() const { return state_ == State::kStreaming; }
  // Why it is not streaming; empty when it is.
  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  enum class State { kDue, kAwaitingStream, kStreaming };

  void Retry(absl::Duration now);
  Advice Lost(const Seen& seen, absl::string_view event, std::string message);

  const Options options_;
  State state_ = State::kDue;
  std::optional<SocketId> kubelet_;  // the one last seen
  absl::Duration next_;              // of the next Register, in kDue
  absl::Duration since_;             // of Register, or of the stream
  int failures_ = 0;
  bool absence_reported_ = false;
  std::string problem_ = "not registered yet";
};

}  // namespace switchyard::kube
