// SPDX-License-Identifier: Apache-2.0
#pragma once

// The one table of configuration keys. File, environment, flags, `config show` and --help all come
// from it. Immutable; any thread.

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "agent/config.h"
#include "base/status.h"

namespace switchyard::agent {

enum class KeyKind { kText, kList, kMap };

// What one source says about a key, before the key's own grammar: the member of its kind is used.
struct Value {
  std::string text;
  std::vector<std::string> list;
  std::vector<std::pair<std::string, std::string>> map;  // in the order written
};

struct Key {
  absl::string_view name;  // "fabric.probeInterval"
  KeyKind kind = KeyKind::kText;
  std::string type;  // for people: "off | advise", "duration 100ms to 1h"
  absl::string_view doc;
  // Parses and stores. The error reads on after the key, see agent/config_values.h.
  std::function<Status(const Value&, Config&)> set;
  std::function<Value(const Config&)> get;
};

[[nodiscard]] const std::vector<Key>& Keys();
[[nodiscard]] const Key* FindKey(absl::string_view name);

// "--fabric-probe-interval", "SWITCHYARD_FABRIC_PROBE_INTERVAL".
[[nodiscard]] std::string FlagName(const Key& key);
[[nodiscard]] std::string EnvironmentName(const Key& key);

// A flag's or variable's text: as it is, or split at commas (lists: a,b; maps: k=v,k=v).
[[nodiscard]] Result<Value> SplitText(const Key& key, absl::string_view text);
// The same backwards, for people.
[[nodiscard]] std::string JoinValue(const Key& key, const Value& value);

// Words of the enums, for logs and messages.
[[nodiscard]] absl::string_view ConsumerName(Consumer consumer);

}  // namespace switchyard::agent
