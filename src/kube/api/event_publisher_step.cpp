// SPDX-License-Identifier: Apache-2.0
// What the publisher's thread does.
#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "kube/api/event_publisher.h"

namespace switchyard::kube::api {
namespace {

// The server may take it later. kCancelled: this process ends.
bool MayHelpToRepeat(const Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsResourceExhausted(status) || absl::IsUnauthenticated(status) ||
         absl::IsCancelled(status);
}

bool IsName(absl::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '-' || c == '.';
  });
}

// "namespace/name"; empty if it is none.
std::string PodPath(const std::string& pod) {
  const std::vector<std::string> parts = absl::StrSplit(pod, '/');
  if (parts.size() != 2 || !IsName(parts[0]) || !IsName(parts[1])) return "";
  return absl::StrCat("/api/v1/namespaces/", parts[0], "/pods/", parts[1]);
}

}  // namespace

absl::Duration EventPublisher::Step() {
  const absl::Duration now = clock_.Monotonic();
  absl::Duration wait;
  std::optional<Series> series = NextDue(now, wait);
  if (!series || !TakeToken(now, wait)) return wait;
  const Status told = Tell(*series);
  Settle(*series, told, clock_.Monotonic());
  SayHowItGoes(told);
  return absl::ZeroDuration();
}

std::optional<EventPublisher::Series> EventPublisher::NextDue(absl::Duration now,
                                                              absl::Duration& wait) {
  const absl::MutexLock lock(&mutex_);
  Expire(now);
  const Series* next = nullptr;
  for (const Series& one : series_) {
    if (one.told == one.when.count) continue;
    if (next == nullptr || one.due < next->due) next = &one;
  }
  wait = absl::InfiniteDuration();
  if (next == nullptr) return std::nullopt;
  wait = std::max(next->due, not_before_) - now;
  if (wait > absl::ZeroDuration()) return std::nullopt;
  return *next;
}

bool EventPublisher::TakeToken(absl::Duration now, absl::Duration& wait) {
  tokens_ = std::min<double>(
      kBurst, tokens_ + absl::FDivDuration(now - std::exchange(refilled_, now), kRefill));
  if (tokens_ < 1) {
    // A little more, lest rounding makes it wait again for next to nothing.
    wait = kRefill * (1 - tokens_) + absl::Milliseconds(1);
    return false;
  }
  tokens_ -= 1;
  return true;
}

Status EventPublisher::Tell(Series& series) {
  if (series.place.kind.empty()) RETURN_IF_ERROR(FindPlace(series));
  if (series.told > 0) {
    const Status patched = Patch(series);
    if (!absl::IsNotFound(patched)) return patched;
    const absl::MutexLock lock(&mutex_);  // somebody deleted it
    series.name = NewName();
  }
  return Create(series);
}

Status EventPublisher::FindPlace(Series& series) {
  const std::string path = PodPath(series.event.pod);
  if (!path.empty()) {
    const Result<std::string> pod = client_.Call({Method::kGet, path, ""});
    if (MayHelpToRepeat(pod.status())) return pod.status();
    if (pod.ok()) {
      if (std::optional<Place> place = PodPlace(*pod, node_)) {
        series.place = *std::move(place);
        return OkStatus();
      }
    }
  }
  series.place = NodePlace(node_);
  return OkStatus();
}

Status EventPublisher::Create(Series& series) {
  const auto create = [&] {
    return client_
        .Call({Method::kPost, EventsPath(series.place),
               EventJson(series.name, series.place, series.event, series.when, node_)})
        .status();
  };
  Status created = create();
  if (!series.place.space.empty() &&
      (absl::IsNotFound(created) || absl::IsPermissionDenied(created))) {
    series.place = NodePlace(node_);  // the pod's namespace goes, or takes no events of ours
    created = create();
  }
  // An earlier request came through, and its answer did not.
  return absl::IsAlreadyExists(created) ? Patch(series) : created;
}

Status EventPublisher::Patch(const Series& series) {
  return client_
      .Call({Method::kPatch, absl::StrCat(EventsPath(series.place), "/", series.name),
             PatchJson(series.when)})
      .status();
}

// `series` is as it was when it was told; more of it may have come since.
void EventPublisher::Settle(const Series& series, const Status& told, absl::Duration now) {
  if (told.ok()) backoff_ = kFirstBackoff;
  if (MayHelpToRepeat(told)) {
    not_before_ = now + std::min(std::max(backoff_, RetryAfter(told)), kGiveUp);
    backoff_ = std::min(2 * backoff_, kMaxBackoff);
  }
  const absl::MutexLock lock(&mutex_);
  const auto kept = std::find_if(series_.begin(), series_.end(),
                                 [&](const Series& one) { return one.id == series.id; });
  if (kept == series_.end()) return;
  kept->place = series.place;
  kept->name = series.name;
  if (MayHelpToRepeat(told)) return;
  const auto news = static_cast<std::uint64_t>(series.when.count - kept->told);
  if (!told.ok()) {
    stats_.dropped += news + static_cast<std::uint64_t>(kept->when.count - series.when.count);
    series_.erase(kept);
    return;
  }
  stats_.sent += news;
  kept->told = series.when.count;
  kept->pending = now;
  kept->due = now + kBetweenPatches;
}

void EventPublisher::SayHowItGoes(const Status& told) {
  if (absl::IsCancelled(told)) return;
  {
    const absl::MutexLock lock(&mutex_);
    stats_.up = told.ok();
  }
  if (std::exchange(last_said_, told.code()) == told.code()) return;
  if (told.ok()) {
    next_.Report(
        {"kubernetes_events_sent", Severity::kInfo, "Kubernetes events are sent again", {}});
  } else {
    next_.Report({"kubernetes_events_failed",
                  Severity::kWarning,
                  absl::StrCat("Kubernetes events can't be sent: ", told.message()),
                  {}});
  }
}

}  // namespace switchyard::kube::api
