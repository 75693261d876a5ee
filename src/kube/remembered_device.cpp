// SPDX-License-Identifier: Apache-2.0
#include "kube/remembered_device.h"

#include <nlohmann/json.hpp>
#include <tuple>

#include "absl/strings/str_cat.h"

namespace switchyard::kube {
namespace {

using Json = nlohmann::json;

constexpr char kGpu[] = "gpu";
constexpr char kNvSwitch[] = "nvswitch";

// May throw Json::exception; FromJson catches.
RememberedDevice Read(const Json& json) {
  RememberedDevice device;
  device.kind =
      json.at("kind").get<std::string>() == kNvSwitch ? DeviceKind::kNvSwitch : DeviceKind::kGpu;
  device.device = json.at("device").get<std::uint16_t>();
  device.iommufd = json.at("iommufd").get<bool>();
  if (json.contains("group")) device.numbers.iommu_group = json["group"].get<int>();
  if (json.contains("cdev")) device.numbers.cdev = json["cdev"].get<std::string>();
  if (json.contains("numa")) device.numa_node = json["numa"].get<int>();
  return device;
}

}  // namespace

bool operator==(const RememberedDevice& a, const RememberedDevice& b) {
  const auto fields = [](const RememberedDevice& d) {
    return std::tie(d.kind, d.device, d.numbers.address, d.numbers.iommu_group, d.numbers.cdev,
                    d.iommufd, d.numa_node, d.members);
  };
  return fields(a) == fields(b);
}

std::string RememberedDeviceToJson(const RememberedDevice& device) {
  Json json = {{"kind", device.kind == DeviceKind::kGpu ? kGpu : kNvSwitch},
               {"device", device.device},
               {"iommufd", device.iommufd},
               {"members", Json::array()}};
  if (device.numbers.iommu_group.has_value()) json["group"] = *device.numbers.iommu_group;
  if (device.numbers.cdev.has_value()) json["cdev"] = *device.numbers.cdev;
  if (device.numa_node.has_value()) json["numa"] = *device.numa_node;
  for (const PciAddress& member : device.members) json["members"].push_back(member.ToString());
  return json.dump();
}

Result<RememberedDevice> RememberedDeviceFromJson(absl::string_view address,
                                                  absl::string_view text) {
  try {
    const Json json = Json::parse(text.begin(), text.end());
    RememberedDevice device = Read(json);
    ASSIGN_OR_RETURN(device.numbers.address, PciAddress::Parse(address));
    for (const Json& member : json.at("members")) {
      ASSIGN_OR_RETURN(const PciAddress parsed, PciAddress::Parse(member.get<std::string>()));
      device.members.push_back(parsed);
    }
    return device;
  } catch (const Json::exception& error) {
    return absl::DataLossError(absl::StrCat("remembered device ", address, ": ", error.what()));
  }
}

}  // namespace switchyard::kube
