// SPDX-License-Identifier: Apache-2.0
#include "fabric/helper_protocol.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "fabric/fabric_answer.h"

namespace switchyard::fabric {
namespace {

using nlohmann::json;

// The first byte of a reply.
constexpr char kResult = '+';
constexpr char kError = '-';

constexpr const char* kPartitionsCall = "partitions";
constexpr const char* kModuleIdsCall = "module_ids";
constexpr std::pair<FabricChange::Kind, const char*> kChangeCalls[] = {
    {FabricChange::Kind::kActivate, "activate"},
    {FabricChange::Kind::kDeactivate, "deactivate"},
    {FabricChange::Kind::kSetActivated, "set_activated"},
};

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

// Nothing for a number that no int holds, too: get<int> would cut it.
std::optional<int> ToInt(const json& value) {
  if (!value.is_number_integer()) return std::nullopt;
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    return std::in_range<int>(number) ? std::optional(static_cast<int>(number)) : std::nullopt;
  }
  const auto number = value.get<std::int64_t>();
  return std::in_range<int>(number) ? std::optional(static_cast<int>(number)) : std::nullopt;
}

std::optional<int> IntAt(const json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? std::nullopt : ToInt(*found);
}

const char* NameOf(FabricChange::Kind kind) {
  for (const auto& [known, name] : kChangeCalls) {
    if (known == kind) return name;
  }
  return "";  // not reached: the table has every kind
}

std::optional<FabricChange> ChangeAt(const json& object, absl::string_view call) {
  FabricChange change;
  bool found = false;
  for (const auto& [kind, name] : kChangeCalls) {
    if (call != name) continue;
    change.kind = kind;
    found = true;
  }
  const auto ids = object.find("partitions");
  if (!found || ids == object.end() || !ids->is_array()) return std::nullopt;
  for (const json& value : *ids) {
    const std::optional<int> id = ToInt(value);
    if (!id) return std::nullopt;
    change.partitions.push_back(*id);
  }
  if (!change.Validate().ok()) return std::nullopt;
  return change;
}

}  // namespace

std::string EncodeRequest(const HelperRequest& request) {
  json object = {{"call", kModuleIdsCall}, {"library", request.library}};
  if (request.call == HelperRequest::Call::kReadPartitions) object["call"] = kPartitionsCall;
  if (request.call == HelperRequest::Call::kChange) {
    object["call"] = NameOf(request.change.kind);
    object["partitions"] = request.change.partitions;
  }
  if (request.call != HelperRequest::Call::kReadModuleIds) {
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
  if (!address || !connect_ms) return Malformed("request");
  if (*call != kPartitionsCall) {
    const std::optional<FabricChange> change = ChangeAt(object, *call);
    if (!change) return Malformed("request");
    request.call = HelperRequest::Call::kChange;
    request.change = *change;
  }
  ASSIGN_OR_RETURN(request.address, FabricAddress::Parse(*address));
  request.connect_timeout = absl::Milliseconds(*connect_ms);
  return request;
}

std::string EncodeReply(const Result<std::string>& result) {
  if (result.ok()) return absl::StrCat(absl::string_view(&kResult, 1), *result);
  json object = {{"code", static_cast<int>(result.status().code())},
                 {"message", std::string(result.status().message())}};
  if (const auto answer = FabricAnswerOf(result.status())) {
    object["fm"] = {{"function", answer->function}, {"code", answer->code}};
  }
  return absl::StrCat(absl::string_view(&kError, 1), Dump(object));
}

Result<std::string> DecodeReply(absl::string_view text) {
  if (text.empty() || (text[0] != kResult && text[0] != kError)) return Malformed("reply");
  if (text[0] == kResult) return std::string(text.substr(1));
  const json object = Parse(text.substr(1));
  if (!object.is_object()) return Malformed("reply");
  const auto code = IntAt(object, "code");
  const auto message = TextAt(object, "message");
  // The canonical codes are 1 to 16; 0 would be a success without a result.
  if (!code || *code < 1 || *code > 16 || !message) return Malformed("reply");
  const Status error(static_cast<absl::StatusCode>(*code), *message);
  const auto fm = object.find("fm");
  if (fm == object.end()) return error;
  const auto function = fm->is_object() ? TextAt(*fm, "function") : std::nullopt;
  const auto fm_code = fm->is_object() ? IntAt(*fm, "code") : std::nullopt;
  // One word, as our own end writes it, and no success beside an error.
  if (!function || function->empty() || function->find(' ') != std::string::npos || !fm_code ||
      *fm_code == 0) {
    return Malformed("reply");
  }
  return WithFabricAnswer(error, {*function, *fm_code});
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
