// SPDX-License-Identifier: Apache-2.0
#pragma once

// YAML text as a plain tree with line numbers: the only user of yaml-cpp. Only what a configuration
// needs: one document of maps, lists and scalars. Anchors, aliases and tags are refused, and so are
// documents that are too large or too deep, so hostile text costs nothing. Scalars stay text: what
// `off` or `15s` means is up to the key.

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/status.h"

namespace switchyard::agent {

inline constexpr size_t kMaxConfigBytes = 64 * 1024;

struct YamlNode {
  enum class Kind { kNull, kScalar, kList, kMap };
  struct Entry;

  Kind kind = Kind::kNull;
  int line = 0;                 // from 1
  std::string text;             // kScalar
  std::vector<YamlNode> items;  // kList
  std::vector<Entry> entries;   // kMap, in the order written; keys may repeat
};

struct YamlNode::Entry {
  std::string key;
  int line = 0;
  YamlNode value;
};

// An empty document is kNull. kInvalidArgument: "file:line: what is wrong".
[[nodiscard]] Result<YamlNode> ReadYaml(absl::string_view text, absl::string_view file_name);

}  // namespace switchyard::agent
