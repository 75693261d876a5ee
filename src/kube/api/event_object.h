// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which of the agent's events a cluster's users see, and as what. Kubernetes events are of core v1:
// kubelet's own are, `kubectl describe` and `kubectl get events` read those, and a repetition is
// one patch of count and time. (events.k8s.io/v1 is another view of the same objects.) Pure.

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/event.h"

namespace switchyard::kube::api {

struct UserEvent {
  std::string reason;  // the event's name in CamelCase: "TenancyOrphaned"
  bool warning = true;
  std::string message;  // with the fields; at most kMaxMessageBytes of UTF-8
  std::string pod;      // "namespace/name", if it is about one; else it is about the node
  bool operator==(const UserEvent&) const = default;
};
inline constexpr size_t kMaxMessageBytes = 1024;  // the API server's limit

// Nothing for events that are not for users.
[[nodiscard]] std::optional<UserEvent> ToUserEvent(const Event& event);

// The event whose trouble is over with this one ("fabric_up" ends "fabric_down"); empty: none. Good
// news is for users who were told the bad.
[[nodiscard]] absl::string_view Ends(absl::string_view event);

// How many names of events are for users.
[[nodiscard]] size_t PublishedCount();

// What it is attached to.
struct Place {
  std::string kind;   // "Node", "Pod"
  std::string space;  // empty: a node, whose events are in "default"
  std::string name;
  // A node's is its name, as with kubelet's own events: so `kubectl describe node` finds them.
  std::string uid;
};
[[nodiscard]] Place NodePlace(const std::string& node);

// The folder of a place's events: "/api/v1/namespaces/default/events".
[[nodiscard]] std::string EventsPath(const Place& place);

struct Occurrences {
  absl::Time first;
  absl::Time last;
  int count = 1;
};

// The object to create, and the merge patch for more of the same.
[[nodiscard]] std::string EventJson(const std::string& name, const Place& place,
                                    const UserEvent& event, const Occurrences& when,
                                    const std::string& node);
[[nodiscard]] std::string PatchJson(const Occurrences& when);

// Where a pod's events go, from the API server's answer; nothing if it runs on another node: then
// it only has the name of the one that is meant.
[[nodiscard]] std::optional<Place> PodPlace(const std::string& answer, const std::string& node);

}  // namespace switchyard::kube::api
