// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makers of the table's rows, one for each type of value: they give a Key its type, parser and
// printer. `field` says which member of Config the row is. Used by agent/config_keys.cpp only.

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "agent/config.h"
#include "agent/config_keys.h"

namespace switchyard::agent {

template <typename T>
using Field = T& (*)(Config&);

template <typename T>
struct Word {
  absl::string_view name;
  T value;
};

[[nodiscard]] Status NotOneOf(absl::string_view text, absl::string_view words);

template <typename T>
Key EnumKey(absl::string_view name, Field<T> field, std::vector<Word<T>> words,
            absl::string_view doc) {
  std::string type;
  for (const Word<T>& word : words) {
    if (!type.empty()) type += " | ";
    type += std::string(word.name);
  }
  Key key{name, KeyKind::kText, type, doc, nullptr, nullptr};
  key.set = [field, words, type](const Value& value, Config& config) -> Status {
    for (const Word<T>& word : words) {
      if (word.name == value.text) {
        field(config) = word.value;
        return OkStatus();
      }
    }
    return NotOneOf(value.text, type);
  };
  key.get = [field, words](const Config& config) {
    const T current = field(const_cast<Config&>(config));
    for (const Word<T>& word : words) {
      if (word.value == current) return Value{std::string(word.name), {}, {}};
    }
    return Value{};
  };
  return key;
}

// Both ends of the range are allowed.
[[nodiscard]] Key DurationKey(absl::string_view name, Field<absl::Duration> field,
                              absl::Duration least, absl::Duration most, absl::string_view doc);

enum class MayBeEmpty { kNo, kYes };
[[nodiscard]] Key PathKey(absl::string_view name, Field<std::string> field, MayBeEmpty empty,
                          absl::string_view doc);
// A unix socket's path: the kernel takes 107 bytes.
[[nodiscard]] Key SocketKey(absl::string_view name, Field<std::string> field,
                            absl::string_view doc);
[[nodiscard]] Key PathsKey(absl::string_view name, Field<std::vector<std::string>> field,
                           absl::string_view doc);

[[nodiscard]] Key FabricAddressKey(absl::string_view name, Field<fabric::FabricAddress> field,
                                   absl::string_view doc);
[[nodiscard]] Key HttpAddressKey(absl::string_view name, Field<HttpAddress> field,
                                 absl::string_view doc);

// A Node object's name, or empty.
[[nodiscard]] Key NodeNameKey(absl::string_view name, Field<std::string> field,
                              absl::string_view doc);
// A resource name, or empty.
[[nodiscard]] Key AliasKey(absl::string_view name, Field<std::string> field, absl::string_view doc);
[[nodiscard]] Key DeviceNamesKey(absl::string_view name,
                                 Field<std::map<std::uint16_t, std::string>> field,
                                 absl::string_view doc);

}  // namespace switchyard::agent
