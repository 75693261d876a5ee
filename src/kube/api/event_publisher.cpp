// SPDX-License-Identifier: Apache-2.0
#include "kube/api/event_publisher.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace switchyard::kube::api {

EventPublisher::EventPublisher(std::string node, Client& client, EventSink& next, Clock& clock)
    : node_(std::move(node)),
      client_(client),
      next_(next),
      clock_(clock),
      refilled_(clock.Monotonic()),
      not_before_(clock.Monotonic()) {}

EventPublisher::~EventPublisher() { Stop(); }

void EventPublisher::Start() {
  auto worker = std::make_unique<Worker>("events", clock_, [this] { return Step(); });
  const absl::MutexLock lock(&mutex_);
  worker_ = std::move(worker);
  worker_->Poke();  // for what was noted before anybody could poke it
}

void EventPublisher::Stop() {
  std::unique_ptr<Worker> worker;
  {
    const absl::MutexLock lock(&mutex_);
    worker = std::move(worker_);
  }
  client_.Close();
}

void EventPublisher::Report(const Event& event) {
  next_.Report(event);
  std::optional<UserEvent> user = ToUserEvent(event);
  if (!user) return;
  const absl::string_view ends = Ends(event.name);
  const absl::MutexLock lock(&mutex_);
  if (!ends.empty() && troubles_.erase(ends) == 0) return;
  if (ends.empty()) troubles_.insert(event.name);
  Note(*std::move(user));
  if (worker_ != nullptr) worker_->Poke();
}

void EventPublisher::Note(UserEvent event) {
  const absl::Duration now = clock_.Monotonic();
  const absl::Time wall = clock_.Now();
  Expire(now);
  for (Series& one : series_) {
    if (one.event != event) continue;
    if (one.told == one.when.count) one.pending = now;
    ++one.when.count;
    one.when.last = wall;
    one.seen = now;
    return;
  }
  if (!MakeRoom()) {
    ++stats_.dropped;
    return;
  }
  Series series;
  series.id = ++last_id_;
  series.event = std::move(event);
  series.name = NewName();
  series.when = {wall, wall, 1};
  series.seen = series.pending = series.due = now;
  series_.push_back(std::move(series));
}

bool EventPublisher::MakeRoom() {
  if (series_.size() < kMaxKept) return true;
  auto oldest = series_.end();
  for (auto one = series_.begin(); one != series_.end(); ++one) {
    if (one->told != one->when.count) continue;
    if (oldest == series_.end() || one->seen < oldest->seen) oldest = one;
  }
  if (oldest == series_.end()) return false;
  series_.erase(oldest);
  return true;
}

void EventPublisher::Expire(absl::Duration now) {
  std::erase_if(series_, [&](const Series& one) {
    if (one.told == one.when.count) return now - one.seen > kSeries;
    if (now - one.pending <= kGiveUp) return false;
    stats_.dropped += static_cast<std::uint64_t>(one.when.count - one.told);
    return true;
  });
}

// As client-go's: the object's name and the time. Unique on the node, and as long as a name may be.
std::string EventPublisher::NewName() {
  constexpr size_t kMaxName = 253;
  constexpr size_t kTimeDigits = 16;
  last_name_ = std::max(absl::ToUnixNanos(clock_.Now()), last_name_ + 1);
  std::string name = node_.substr(0, kMaxName - kTimeDigits - 1);
  while (!name.empty() && !absl::ascii_isalnum(static_cast<unsigned char>(name.back())))
    name.pop_back();
  return absl::StrCat(name, ".", absl::Hex(last_name_, absl::kZeroPad16));
}

EventPublisher::Stats EventPublisher::stats() const {
  const absl::MutexLock lock(&mutex_);
  return stats_;
}

}  // namespace switchyard::kube::api
