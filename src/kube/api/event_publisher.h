// SPDX-License-Identifier: Apache-2.0
#pragma once

// The event sink's way to a cluster's users: passes every event on, and tells the API server those
// that a user must act on, from a thread of its own. Report only notes them down: the same again is
// a count on the one that is there, and a server that is slow or away costs nobody time. Bounded:
// so many different ones are kept, each so long; what could not be told by then is counted as
// dropped. Report and stats from any thread.

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "base/event.h"
#include "base/worker.h"
#include "kube/api/client.h"
#include "kube/api/event_object.h"

namespace switchyard::kube::api {

class EventPublisher final : public EventSink {
 public:
  static constexpr size_t kMaxKept = 256;
  // The same event within this time of its last occurrence is counted on the same object.
  static constexpr absl::Duration kSeries = absl::Minutes(10);
  // One that could not be told for so long is news no more.
  static constexpr absl::Duration kGiveUp = absl::Minutes(10);
  // Counts are brought up to date no more often.
  static constexpr absl::Duration kBetweenPatches = absl::Seconds(30);
  // Requests: so many at once, then one each kRefill.
  static constexpr int kBurst = 25;
  static constexpr absl::Duration kRefill = absl::Seconds(5);
  static constexpr absl::Duration kFirstBackoff = absl::Seconds(1);
  static constexpr absl::Duration kMaxBackoff = absl::Minutes(1);

  // `next` gets every event, and how the publisher itself fares. All outlive it.
  EventPublisher(std::string node, Client& client, EventSink& next, Clock& clock);
  ~EventPublisher() override;

  void Report(const Event& event) override;
  void Measure(const Timing& timing) override { next_.Measure(timing); }

  void Start();
  // Ends the request that runs; what is not told by then is lost.
  void Stop();

  // What the thread does again and again: at most one event, and how long to wait then.
  [[nodiscard]] absl::Duration Step();

  struct Stats {
    std::uint64_t sent = 0;     // events and counts that the API server took
    std::uint64_t dropped = 0;  // given up, or refused by it
    std::optional<bool> up;     // whether it answered the last request
  };
  [[nodiscard]] Stats stats() const;

 private:
  struct Series {
    std::uint64_t id = 0;
    UserEvent event;
    std::string
        name;     // of its object; made with it, so that a repeated request makes no second one
    Place place;  // kind empty: not looked up yet
    Occurrences when;
    int told = 0;            // of its occurrences
    absl::Duration seen;     // the last one; monotonic, as the others
    absl::Duration pending;  // the first one that is not told
    absl::Duration due;      // not before
  };

  void Note(UserEvent event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MakeRoom() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Expire(absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string NewName() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // The one that has waited longest, if it is due.
  std::optional<Series> NextDue(absl::Duration now, absl::Duration& wait);
  bool TakeToken(absl::Duration now, absl::Duration& wait);
  // On the API server. They change what the series knows of its place and name.
  Status Tell(Series& series);
  Status Create(Series& series);
  Status Patch(const Series& series);
  Status FindPlace(Series& series);
  void Settle(const Series& series, const Status& told, absl::Duration now);
  void SayHowItGoes(const Status& told);

  const std::string node_;
  Client& client_;
  EventSink& next_;
  Clock& clock_;

  mutable absl::Mutex mutex_;
  std::vector<Series> series_ ABSL_GUARDED_BY(mutex_);
  std::set<absl::string_view> troubles_ ABSL_GUARDED_BY(mutex_);  // told, and not over
  Stats stats_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  std::int64_t last_name_ ABSL_GUARDED_BY(mutex_) = 0;
  std::unique_ptr<Worker> worker_ ABSL_GUARDED_BY(mutex_);

  // The thread's own.
  double tokens_ = kBurst;
  absl::Duration refilled_;
  absl::Duration not_before_;
  absl::Duration backoff_ = kFirstBackoff;
  absl::StatusCode last_said_ = absl::StatusCode::kOk;
};

}  // namespace switchyard::kube::api
