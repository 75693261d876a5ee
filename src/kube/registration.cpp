// SPDX-License-Identifier: Apache-2.0
#include "kube/registration.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace switchyard::kube {
namespace {

// Changes wake the caller; looking again now and then covers a missed wake-up.
constexpr absl::Duration kLookAgain = absl::Seconds(10);
// A stream that lives this long ends the series of failures.
constexpr absl::Duration kStable = absl::Seconds(10);
constexpr int kMaxDoublings = 16;

}  // namespace

Registration::Advice Registration::Look(const Seen& seen) {
  if (!seen.kubelet.has_value()) {
    problem_ = "kubelet's socket is not there";
    Advice advice{false, kLookAgain, "", ""};
    if (!std::exchange(absence_reported_, true)) {
      advice.event = "kubelet_absent";
      advice.message = "kubelet's socket is not there: registering as soon as it is";
    }
    return advice;
  }
  absence_reported_ = false;
  if (seen.kubelet != kubelet_) {
    kubelet_ = seen.kubelet;
    failures_ = 0;
    Restart();
  }
  if (state_ == State::kAwaitingStream && seen.streaming) {
    state_ = State::kStreaming;
    since_ = seen.now;
    problem_.clear();
  }
  switch (state_) {
    case State::kDue:
      if (seen.now >= next_) return {true, absl::ZeroDuration(), "", ""};
      return {false, next_ - seen.now, "", ""};
    case State::kAwaitingStream:
      if (seen.stream_came)
        return Lost(seen, "stream_closed", "kubelet closed the device list's stream at once");
      if (seen.now - since_ >= options_.stream_timeout) {
        return Lost(seen, "stream_missing",
                    absl::StrCat("registered, but kubelet did not ask for the device list within ",
                                 absl::FormatDuration(options_.stream_timeout)));
      }
      return {false, since_ + options_.stream_timeout - seen.now, "", ""};
    case State::kStreaming:
      if (!seen.streaming)
        return Lost(seen, "stream_closed", "kubelet closed the device list's stream");
      if (seen.now - since_ >= kStable) failures_ = 0;
      return {false, kLookAgain, "", ""};
  }
  return {false, kLookAgain, "", ""};
}

void Registration::Succeeded(absl::Duration now) {
  state_ = State::kAwaitingStream;
  since_ = now;
  problem_ = "registered, waiting for kubelet to ask for the device list";
}

void Registration::Failed(absl::Duration now, const Status& why) {
  problem_ = std::string(why.message());
  Retry(now);
}

void Registration::Restart() {
  state_ = State::kDue;
  next_ = -absl::InfiniteDuration();
  problem_ = "not registered yet";
}

void Registration::Retry(absl::Duration now) {
  state_ = State::kDue;
  const int doublings = std::min(failures_++, kMaxDoublings);
  next_ = now + std::min(options_.first_retry * (1 << doublings), options_.max_retry);
}

Registration::Advice Registration::Lost(const Seen& seen, absl::string_view event,
                                        std::string message) {
  Retry(seen.now);
  problem_ = message;
  absl::StrAppend(&message, "; registering again in ", absl::FormatDuration(next_ - seen.now));
  return {false, next_ - seen.now, event, std::move(message)};
}

}  // namespace switchyard::kube
