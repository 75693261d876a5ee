// SPDX-License-Identifier: Apache-2.0
#include "fabric/helper_protocol.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"

namespace switchyard::fabric {
namespace {

using nlohmann::json;

constexpr const char* kPartitionsCall = "partitions";
constexpr const char* kModuleIdsCall = "module_ids";

// Never throws: bytes that are no UTF-8 (in the text of a loader's error) are replaced.
std::string Dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

json Parse(absl::string_view text) {
  return json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
}

Status Malformed(absl::string_view what) {
  return absl::InternalError(absl::StrCat("the fabric helper's ", what, " is malformed"));
}

std::optional<std::string> TextAt(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return std::nullopt;
  return found->get<std::string>();
}

std::optional<int> IntAt(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_integer()) return std::nullopt;
  return found->get<int>();
}

}  // namespace

std::string EncodeRequest(const HelperRequest& request) {
  json object = {{"call", kModuleIdsCall}, {"library", request.library}};
  if (request.call == HelperRequest::Call::kReadPartitions) {
    object["call"] = kPartitionsCall;
    object["address"] = request.address.ToString();
    object["connect_ms"] = absl::ToInt64Milliseconds(request.connect_timeout);
  }
  return Dump(object);
}

Result<HelperRequest> DecodeRequest(absl::string_view text) {
  const json object = Parse(text);
  if (!object.is_object()) return Malformed("request");
  const auto call = TextAt(object, "call");
  const auto library = TextAt(object, "library");
  if (!call || !library) return Malformed("request");
  HelperRequest request;
  request.library = *library;
  if (*call == kModuleIdsCall) {
    request.call = HelperRequest::Call::kReadModuleIds;
    return request;
  }
  const auto address = TextAt(object, "address");
  const auto connect_ms = IntAt(object, "connect_ms");
  if (*call != kPartitionsCall || !address || !connect_ms) return Malformed("request");
  ASSIGN_OR_RETURN(request.address, FabricAddress::Parse(*address));
  request.connect_timeout = absl::Milliseconds(*connect_ms);
  return request;
}

std::string EncodeReply(const Result<std::string>& result) {
  if (result.ok()) return Dump({{"result", *result}});
  return Dump({{"code", static_cast<int>(result.status().code())},
               {"message", std::string(result.status().message())}});
}

Result<std::string> DecodeReply(absl::string_view text) {
  const json object = Parse(text);
  if (!object.is_object()) return Malformed("reply");
  if (auto result = TextAt(object, "result")) return *std::move(result);
  const auto code = IntAt(object, "code");
  const auto message = TextAt(object, "message");
  // The canonical codes are 1 to 16; 0 would be a success without a result.
  if (!code || *code < 1 || *code > 16 || !message) return Malformed("reply");
  return Status(static_cast<absl::StatusCode>(*code), *message);
}

std::string EncodeModules(const ModuleEntries& entries) {
  json object = json::object();
  for (const auto& [address, module] : entries) object[address.ToString()] = module;
  return Dump(object);
}

Result<ModuleEntries> DecodeModules(absl::string_view text) {
  const json object = Parse(text);
  if (!object.is_object()) return Malformed("list of modules");
  ModuleEntries entries;
  for (const auto& [key, value] : object.items()) {
    const Result<PciAddress> address = PciAddress::Parse(key);
    const std::optional<int> module = IntAt(object, key.c_str());
    if (!address.ok() || !module || *module < kMinModule || *module > kMaxModule) {
      return Malformed("list of modules");
    }
    entries[*address] = *module;
  }
  return entries;
}

}  // namespace switchyard::fabric
