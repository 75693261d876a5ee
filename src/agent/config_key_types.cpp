// SPDX-License-Identifier: Apache-2.0
#include "agent/config_key_types.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "agent/config_values.h"

namespace switchyard::agent {
namespace {

constexpr size_t kMaxPathBytes = 4095;       // PATH_MAX without its NUL
constexpr size_t kMaxSocketPathBytes = 107;  // sizeof(sockaddr_un::sun_path) without its NUL
constexpr size_t kMaxPaths = 16;
constexpr size_t kMaxNames = 256;

Value Text(std::string text) { return Value{std::move(text), {}, {}}; }

// A row for a string that only needs a check.
Key CheckedTextKey(absl::string_view name, std::string type, Field<std::string> field,
                   absl::string_view doc, std::function<Status(absl::string_view)> check) {
  Key key{name, KeyKind::kText, std::move(type), doc, nullptr, nullptr};
  key.set = [field, check = std::move(check)](const Value& value, Config& config) -> Status {
    RETURN_IF_ERROR(check(value.text));
    field(config) = value.text;
    return OkStatus();
  };
  key.get = [field](const Config& config) { return Text(field(const_cast<Config&>(config))); };
  return key;
}

}  // namespace

Status NotOneOf(absl::string_view text, absl::string_view words) {
  return absl::InvalidArgumentError(absl::StrCat(Quote(text), " is not one of ", words));
}

Key DurationKey(absl::string_view name, Field<absl::Duration> field, absl::Duration least,
                absl::Duration most, absl::string_view doc) {
  const std::string range = absl::StrCat(DurationText(least), " to ", DurationText(most));
  Key key{name, KeyKind::kText, absl::StrCat("duration, ", range), doc, nullptr, nullptr};
  key.set = [=](const Value& value, Config& config) -> Status {
    ASSIGN_OR_RETURN(const absl::Duration duration, ParseDuration(value.text));
    if (duration < least || duration > most) {
      return absl::InvalidArgumentError(
          absl::StrCat(Quote(value.text), " is out of range: ", range));
    }
    field(config) = duration;
    return OkStatus();
  };
  key.get = [field](const Config& config) {
    return Text(DurationText(field(const_cast<Config&>(config))));
  };
  return key;
}

Key PathKey(absl::string_view name, Field<std::string> field, MayBeEmpty empty,
            absl::string_view doc) {
  const bool may_be_empty = empty == MayBeEmpty::kYes;
  return CheckedTextKey(name, may_be_empty ? "absolute path or empty" : "absolute path", field, doc,
                        [may_be_empty](absl::string_view text) {
                          if (may_be_empty && text.empty()) return OkStatus();
                          return CheckPath(text, kMaxPathBytes);
                        });
}

Key SocketKey(absl::string_view name, Field<std::string> field, absl::string_view doc) {
  return CheckedTextKey(
      name, absl::StrCat("absolute path, at most ", kMaxSocketPathBytes, " bytes"), field, doc,
      [](absl::string_view text) { return CheckPath(text, kMaxSocketPathBytes); });
}

Key PathsKey(absl::string_view name, Field<std::vector<std::string>> field, absl::string_view doc) {
  Key key{name, KeyKind::kList, "list of absolute paths", doc, nullptr, nullptr};
  key.set = [field](const Value& value, Config& config) -> Status {
    if (value.list.size() > kMaxPaths) {
      return absl::InvalidArgumentError(
          absl::StrCat("has ", value.list.size(), " entries: at most ", kMaxPaths));
    }
    for (auto path = value.list.begin(); path != value.list.end(); ++path) {
      RETURN_IF_ERROR(CheckPath(*path, kMaxPathBytes));
      if (std::find(value.list.begin(), path, *path) != path) {
        return absl::InvalidArgumentError(absl::StrCat(Quote(*path), " is in the list twice"));
      }
    }
    field(config) = value.list;
    return OkStatus();
  };
  key.get = [field](const Config& config) {
    return Value{"", field(const_cast<Config&>(config)), {}};
  };
  return key;
}

Key FabricAddressKey(absl::string_view name, Field<fabric::FabricAddress> field,
                     absl::string_view doc) {
  Key key{name, KeyKind::kText, "ipv4:port | unix:/path", doc, nullptr, nullptr};
  key.set = [field](const Value& value, Config& config) -> Status {
    ASSIGN_OR_RETURN(field(config), fabric::FabricAddress::Parse(value.text));
    return OkStatus();
  };
  key.get = [field](const Config& config) {
    return Text(field(const_cast<Config&>(config)).ToString());
  };
  return key;
}

Key HttpAddressKey(absl::string_view name, Field<HttpAddress> field, absl::string_view doc) {
  Key key{name, KeyKind::kText, "IP:port", doc, nullptr, nullptr};
  key.set = [field](const Value& value, Config& config) -> Status {
    ASSIGN_OR_RETURN(field(config), ParseHttpAddress(value.text));
    return OkStatus();
  };
  key.get = [field](const Config& config) {
    return Text(field(const_cast<Config&>(config)).ToString());
  };
  return key;
}

Key NodeNameKey(absl::string_view name, Field<std::string> field, absl::string_view doc) {
  return CheckedTextKey(name, "node name or empty", field, doc, [](absl::string_view text) {
    return text.empty() ? OkStatus() : CheckNodeName(text);
  });
}

Key AliasKey(absl::string_view name, Field<std::string> field, absl::string_view doc) {
  return CheckedTextKey(name, "resource name or empty", field, doc, [](absl::string_view text) {
    return text.empty() ? OkStatus() : CheckResourceName(text);
  });
}

Key DeviceNamesKey(absl::string_view name, Field<std::map<std::uint16_t, std::string>> field,
                   absl::string_view doc) {
  Key key{name, KeyKind::kMap, "map of device id to resource name", doc, nullptr, nullptr};
  key.set = [field](const Value& value, Config& config) -> Status {
    std::map<std::uint16_t, std::string> names;
    for (const auto& [id, resource] : value.map) {
      ASSIGN_OR_RETURN(const std::uint16_t device, ParseDeviceId(id));
      RETURN_IF_ERROR(Annotate(CheckResourceName(resource), id));
      if (!names.emplace(device, resource).second) {
        return absl::InvalidArgumentError(absl::StrCat(Quote(id), " is named twice"));
      }
    }
    if (names.size() > kMaxNames) {
      return absl::InvalidArgumentError(
          absl::StrCat("has ", names.size(), " entries: at most ", kMaxNames));
    }
    field(config) = std::move(names);
    return OkStatus();
  };
  key.get = [field](const Config& config) {
    Value value;
    for (const auto& [id, resource] : field(const_cast<Config&>(config))) {
      value.map.emplace_back(absl::StrFormat("0x%04x", id), resource);
    }
    return value;
  };
  return key;
}

}  // namespace switchyard::agent
