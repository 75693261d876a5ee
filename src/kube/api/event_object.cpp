// SPDX-License-Identifier: Apache-2.0
#include "kube/api/event_object.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace switchyard::kube::api {
namespace {

using nlohmann::json;

enum class About { kNode, kPod };

struct Published {
  absl::string_view name;
  // kPod: its owner's pod has the devices. Not where that pod is gone: another may have its name.
  About about = About::kNode;
  absl::string_view ends = "";
};

// docs/events.md marks the same ones. Not tenancy_refused: allocate_failed says the same with the
// devices' names. Not a device's health: kubelet shows it, and one cause would be many events.
constexpr std::array kPublished = {
    Published{"activation_failed", About::kPod},
    Published{"active_list_failed"},
    Published{"active_list_sent"},
    Published{"allocate_failed"},
    Published{"assignments_complete", About::kNode, "assignments_incomplete"},
    Published{"assignments_incomplete"},
    Published{"boot_id_unreadable"},
    Published{"cdi_failed"},
    Published{"device_unreadable"},
    Published{"fabric_clean", About::kNode, "fabric_dirty"},
    Published{"fabric_dirty"},
    Published{"fabric_down"},
    Published{"fabric_off"},
    Published{"fabric_up", About::kNode, "fabric_down"},
    Published{"foreign_deactivated"},
    Published{"foreign_found"},
    Published{"invariant_refused"},
    Published{"inventory_failed"},
    Published{"journal_failed"},
    Published{"journal_lost"},
    Published{"journal_unusable"},
    Published{"journal_writable", About::kNode, "journal_failed"},
    Published{"listen_failed"},
    Published{"map_error"},
    Published{"memory_error"},
    Published{"module_map_differs"},
    Published{"no_partition"},
    Published{"partition_inactive"},
    Published{"partition_lost", About::kPod},
    Published{"partition_vanished", About::kPod},
    Published{"pre_start_failed"},
    Published{"release_failed"},
    Published{"resource_renamed"},
    Published{"restart_kind_unknown"},
    Published{"state_set_aside"},
    Published{"state_unusable"},
    Published{"store_failed"},
    Published{"table_changed"},
    Published{"tenancy_kept", About::kPod},
    Published{"tenancy_orphaned"},
};

const Published* Find(absl::string_view name) {
  const auto found = std::find_if(kPublished.begin(), kPublished.end(),
                                  [name](const Published& one) { return one.name == name; });
  return found == kPublished.end() ? nullptr : &*found;
}

std::string CamelCase(absl::string_view name) {
  std::string text;
  bool upper = true;
  for (const char c : name) {
    if (c != '_') text.push_back(upper ? absl::ascii_toupper(static_cast<unsigned char>(c)) : c);
    upper = c == '_';
  }
  return text;
}

// At most `max` bytes, no character cut in two.
std::string Cut(std::string text, size_t max) {
  constexpr absl::string_view kMore = "...";
  if (text.size() <= max) return text;
  size_t end = max - kMore.size();
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  text.resize(end);
  return text.append(kMore.data(), kMore.size());
}

std::string Words(const Event& event) {
  std::string words = event.message;
  std::string fields;
  for (const auto& [key, value] : event.fields) {
    if (!value.empty()) absl::StrAppend(&fields, fields.empty() ? "" : " ", key, "=", value);
  }
  return fields.empty() ? words : absl::StrCat(words, " [", fields, "]");
}

std::string PodOf(const Event& event) {
  for (const auto& [key, value] : event.fields) {
    absl::string_view pod = value;
    if (key == "owner" && absl::ConsumePrefix(&pod, "pod ")) return std::string(pod);
  }
  return "";
}

std::string TimeText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", time, absl::UTCTimeZone());
}

std::string Dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

std::optional<UserEvent> ToUserEvent(const Event& event) {
  const Published* published = Find(event.name);
  const bool bad = event.severity >= Severity::kWarning;
  // The first partition table is no change.
  if (published == nullptr || (!bad && published->ends.empty())) return std::nullopt;
  UserEvent user;
  user.reason = CamelCase(event.name);
  user.warning = bad;
  user.message = Cut(Words(event), kMaxMessageBytes);
  if (published->about == About::kPod) user.pod = PodOf(event);
  return user;
}

absl::string_view Ends(absl::string_view event) {
  const Published* published = Find(event);
  return published == nullptr ? "" : published->ends;
}

size_t PublishedCount() { return kPublished.size(); }

Place NodePlace(const std::string& node) { return {"Node", "", node, node}; }

std::string EventsPath(const Place& place) {
  return absl::StrCat("/api/v1/namespaces/", place.space.empty() ? "default" : place.space,
                      "/events");
}

std::string EventJson(const std::string& name, const Place& place, const UserEvent& event,
                      const Occurrences& when, const std::string& node) {
  json object = {
      {"apiVersion", "v1"}, {"kind", place.kind}, {"name", place.name}, {"uid", place.uid}};
  if (!place.space.empty()) object["namespace"] = place.space;
  return Dump(
      {{"apiVersion", "v1"},
       {"kind", "Event"},
       {"metadata", {{"name", name}, {"namespace", place.space.empty() ? "default" : place.space}}},
       {"involvedObject", std::move(object)},
       {"reason", event.reason},
       {"type", event.warning ? "Warning" : "Normal"},
       {"message", event.message},
       {"source", {{"component", "switchyard"}, {"host", node}}},
       {"reportingComponent", "switchyard"},
       {"reportingInstance", node},
       {"firstTimestamp", TimeText(when.first)},
       {"lastTimestamp", TimeText(when.last)},
       {"count", when.count}});
}

std::string PatchJson(const Occurrences& when) {
  return Dump({{"count", when.count}, {"lastTimestamp", TimeText(when.last)}});
}

std::optional<Place> PodPlace(const std::string& answer, const std::string& node) {
  const json pod = json::parse(answer, nullptr, /*allow_exceptions=*/false);
  const auto text = [&pod](const char* pointer) -> std::string {
    const json::json_pointer at(pointer);
    if (!pod.is_object() || !pod.contains(at) || !pod.at(at).is_string()) return "";
    return pod.at(at).get<std::string>();
  };
  Place place{"Pod", text("/metadata/namespace"), text("/metadata/name"), text("/metadata/uid")};
  if (place.space.empty() || place.name.empty() || place.uid.empty()) return std::nullopt;
  if (text("/spec/nodeName") != node) return std::nullopt;
  return place;
}

}  // namespace switchyard::kube::api
