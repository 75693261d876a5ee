// SPDX-License-Identifier: Apache-2.0
#include "sim/node/requests.h"

#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace switchyard::sim {

using Json = nlohmann::json;

Result<std::string> TextArgument(const Json& request, const char* key) {
  if (!request.contains(key) || !request[key].is_string()) {
    return absl::InvalidArgumentError(absl::StrCat("\"", key, "\" must be given, as a text"));
  }
  return request[key].get<std::string>();
}

Result<std::int64_t> IntArgument(const Json& request, const char* key, std::int64_t least,
                                 std::int64_t most) {
  if (!request.contains(key) || !request[key].is_number_integer() || request[key] < least ||
      request[key] > most) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", key, "\" must be a whole number from ", least, " to ", most));
  }
  return request[key].get<std::int64_t>();
}

Result<PciAddress> DeviceArgument(const SimNode& node, const Json& request, const char* key) {
  ASSIGN_OR_RETURN(std::string text, TextArgument(request, key));
  int module = 0;
  if (!absl::SimpleAtoi(text, &module)) return PciAddress::Parse(text);
  const BoardDevice* device = node.has_board() ? node.board().FindModule(module) : nullptr;
  if (device == nullptr) {
    return absl::NotFoundError(absl::StrCat("the board has no module ", module));
  }
  return device->address;
}

Result<Json> HandleRequest(SimNode& node, const Json& request) {
  static const RequestTable table = [] {
    RequestTable all;
    AddDeviceRequests(all);
    AddFabricRequests(all);
    AddKubeletRequests(all);
    AddStatusRequests(all);
    return all;
  }();
  ASSIGN_OR_RETURN(const std::string command, TextArgument(request, "command"));
  const auto it = table.find(command);
  if (it == table.end()) {
    return absl::InvalidArgumentError(absl::StrCat("unknown command \"", command, "\""));
  }
  const std::string part = command.substr(0, command.find('.'));
  if ((part == "device" && !node.has_sysfs()) || (part == "fm" && !node.has_fm()) ||
      (part == "map" && !node.has_board()) ||
      ((part == "kubelet" || part == "pod") && !node.has_kubelet())) {
    return absl::FailedPreconditionError(
        absl::StrCat("\"", command, "\": this simulator was started without that part"));
  }
  return it->second(node, request);
}

}  // namespace switchyard::sim
