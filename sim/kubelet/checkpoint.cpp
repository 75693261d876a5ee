// SPDX-License-Identifier: Apache-2.0
#include "sim/kubelet/checkpoint.h"

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "base/files.h"
#include "k8s_deviceplugin_v1beta1.pb.h"
#include "sim/kubelet/answer_message.h"

namespace switchyard::sim {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxBytes = 64 << 20;
constexpr char kUidPrefix[] = "00000000-0000-4000-8000-";
constexpr char kNoNode[] = "-1";  // kubelet's nodeWithoutTopology

// FNV-1a, 32 bits, as kubelet's; over other bytes.
std::uint64_t Checksum(absl::string_view text) {
  std::uint32_t hash = 2166136261u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash;
}

// A device of several nodes stands under each of them.
Json IdsByNode(const std::vector<AllocatedDevice>& devices) {
  Json nodes = Json::object();
  for (const AllocatedDevice& device : devices) {
    if (device.numa_nodes.empty()) nodes[kNoNode].push_back(device.id);
    for (const int node : device.numa_nodes) nodes[absl::StrCat(node)].push_back(device.id);
  }
  return nodes;
}

std::vector<AllocatedDevice> DevicesOf(const Json& ids_by_node) {
  std::map<std::string, std::vector<int>> devices;
  for (const auto& [node, ids] : ids_by_node.items()) {
    for (const Json& id : ids) {
      std::vector<int>& nodes = devices[id.get<std::string>()];
      int number = 0;
      if (node != kNoNode && absl::SimpleAtoi(node, &number)) nodes.push_back(number);
    }
  }
  std::vector<AllocatedDevice> all;
  all.reserve(devices.size());
  for (auto& [id, nodes] : devices) all.push_back({id, std::move(nodes)});
  return all;
}

Json ToJson(PodUid pod, const std::string& container, const Allocation& allocation) {
  v1beta1::ContainerAllocateResponse message;
  ToMessage(allocation.answer, message);
  return {{"PodUID", PodUidText(pod)},
          {"ContainerName", container},
          {"ResourceName", allocation.resource},
          {"DeviceIDs", IdsByNode(allocation.devices)},
          {"AllocResp", absl::Base64Escape(message.SerializeAsString())}};
}

Result<PodUid> ParsePodUid(absl::string_view text) {
  PodUid pod = 0;
  if (!absl::ConsumePrefix(&text, kUidPrefix) || !absl::SimpleHexAtoi(text, &pod)) {
    return absl::DataLossError(absl::StrCat("PodUID ", text, " is none of the simulator's"));
  }
  return pod;
}

// Throws Json::exception where a field is missing or of another kind.
Status AddEntry(const Json& entry, PodDevices& pods) {
  ASSIGN_OR_RETURN(const PodUid pod, ParsePodUid(entry.at("PodUID").get<std::string>()));
  std::string bytes;
  v1beta1::ContainerAllocateResponse message;
  if (!absl::Base64Unescape(entry.at("AllocResp").get<std::string>(), &bytes) ||
      !message.ParseFromString(bytes)) {
    return absl::DataLossError("AllocResp is no answer to an Allocate");
  }
  pods.Insert(pod, entry.at("ContainerName").get<std::string>(),
              {.resource = entry.at("ResourceName").get<std::string>(),
               .devices = DevicesOf(entry.at("DeviceIDs")),
               .answer = ToAnswer(message)});
  return OkStatus();
}

Result<Checkpoint> FromJson(const Json& json) {
  Checkpoint checkpoint;
  try {
    const Json& data = json.at("Data");
    if (json.at("Checksum").get<std::uint64_t>() != Checksum(data.dump())) {
      return absl::FailedPreconditionError(
          "its checksum is not the simulator's: is this a real kubelet's folder? Take another, or "
          "move the file away");
    }
    for (const Json& entry : data.at("PodDeviceEntries")) {
      RETURN_IF_ERROR(AddEntry(entry, checkpoint.pods));
    }
    for (const auto& [resource, ids] : data.at("RegisteredDevices").items()) {
      checkpoint.registered[resource] = ids.get<std::set<std::string>>();
    }
  } catch (const Json::exception& e) {
    return absl::DataLossError(e.what());
  }
  return checkpoint;
}

}  // namespace

std::string PodUidText(PodUid pod) { return absl::StrFormat("%s%012x", kUidPrefix, pod); }

std::string CheckpointText(const Checkpoint& checkpoint) {
  Json entries;  // null if there are none, as Go writes a slice that was never made
  for (const auto& [pod, containers] : checkpoint.pods.all()) {
    for (const auto& [container, allocations] : containers) {
      for (const Allocation& allocation : allocations) {
        entries.push_back(ToJson(pod, container, allocation));
      }
    }
  }
  Json registered = Json::object();
  for (const auto& [resource, ids] : checkpoint.registered) registered[resource] = ids;
  const std::string data =
      Json({{"PodDeviceEntries", std::move(entries)}, {"RegisteredDevices", std::move(registered)}})
          .dump();
  return absl::StrCat("{\"Data\":", data, ",\"Checksum\":", Checksum(data), "}");
}

Result<Checkpoint> ParseCheckpoint(absl::string_view text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return absl::DataLossError("not a JSON object");
  return FromJson(json);
}

Status WriteCheckpoint(const std::string& path, const Checkpoint& checkpoint) {
  const size_t slash = path.rfind('/') + 1;
  const std::string temporary = absl::StrCat(path.substr(0, slash), ".", path.substr(slash));
  std::ofstream file(temporary, std::ios::trunc);
  file << CheckpointText(checkpoint);
  file.close();
  if (!file || std::rename(temporary.c_str(), path.c_str()) != 0) {
    return ErrnoError(errno, absl::StrCat("writing ", path));
  }
  return OkStatus();
}

Result<std::optional<Checkpoint>> ReadCheckpoint(const std::string& path) {
  const Result<std::string> text = ReadFile(path, kMaxBytes);
  if (absl::IsNotFound(text.status())) return std::optional<Checkpoint>();
  RETURN_IF_ERROR(text.status());
  Result<Checkpoint> checkpoint = ParseCheckpoint(*text);
  if (!checkpoint.ok()) return Annotate(checkpoint.status(), path);
  return std::optional<Checkpoint>(*std::move(checkpoint));
}

}  // namespace switchyard::sim
