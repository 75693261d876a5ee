// SPDX-License-Identifier: Apache-2.0
#include "kube/pod_of_cgroup.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace switchyard::kube {
namespace {

bool IsHex(char c) { return absl::ascii_isdigit(c) || (c >= 'a' && c <= 'f'); }

// A UUID, or the digest that kubelet gives a static pod.
bool IsUid(absl::string_view text) {
  if (text.size() == 32) return std::all_of(text.begin(), text.end(), IsHex);
  if (text.size() != 36) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool hyphen = i == 8 || i == 13 || i == 18 || i == 23;
    if (hyphen ? text[i] != '-' : !IsHex(text[i])) return false;
  }
  return true;
}

std::string QosOf(absl::string_view word) {
  if (word == "burstable") return "Burstable";
  return word == "besteffort" ? "BestEffort" : "";
}

// "kubepods-burstable-pod0d1e_...slice", with what kubelet's cgroup root puts before it
// ("kubelet-kubepods-..."), and after it where the runtime is on cgroupfs
// (".slice:cri-containerd:").
std::optional<PodOfCgroup> FromSlice(absl::string_view part) {
  part = part.substr(0, part.find(':'));
  if (!absl::ConsumeSuffix(&part, ".slice")) return std::nullopt;
  // systemd's names have hyphens for the folders between.
  const std::vector<absl::string_view> words = absl::StrSplit(part, '-');
  if (words.size() < 2 || !absl::StartsWith(words.back(), "pod")) return std::nullopt;
  const std::string uid = absl::StrReplaceAll(words.back().substr(3), {{"_", "-"}});
  if (!IsUid(uid)) return std::nullopt;
  const absl::string_view before = words[words.size() - 2];
  if (before == "kubepods") return PodOfCgroup{uid, "Guaranteed"};
  const std::string qos = QosOf(before);
  if (qos.empty() || words.size() < 3 || words[words.size() - 3] != "kubepods") return std::nullopt;
  return PodOfCgroup{uid, qos};
}

// "pod0d1e-..." in parts[i].
std::optional<PodOfCgroup> FromFolder(const std::vector<absl::string_view>& parts, size_t i) {
  absl::string_view uid = parts[i];
  if (!absl::ConsumePrefix(&uid, "pod") || !IsUid(uid)) return std::nullopt;
  const absl::string_view before = parts[i - 1];  // there is one: the path begins with '/'
  PodOfCgroup pod = {std::string(uid), ""};
  if (before == "..") return pod;
  if (before == "kubepods") {
    pod.qos = "Guaranteed";
    return pod;
  }
  pod.qos = QosOf(before);
  const bool below = i >= 2 && (parts[i - 2] == "kubepods" || parts[i - 2] == "..");
  if (pod.qos.empty() || !below) return std::nullopt;
  return pod;
}

}  // namespace

std::optional<PodOfCgroup> PodOf(absl::string_view cgroup) {
  if (!absl::StartsWith(cgroup, "/")) return std::nullopt;
  const std::vector<absl::string_view> parts = absl::StrSplit(cgroup, '/');
  // From the top: what a container makes below its own cgroup may have any name.
  for (size_t i = 1; i < parts.size(); ++i) {
    std::optional<PodOfCgroup> pod = FromSlice(parts[i]);
    if (!pod.has_value()) pod = FromFolder(parts, i);
    if (pod.has_value()) return pod;
  }
  return std::nullopt;
}

}  // namespace switchyard::kube
