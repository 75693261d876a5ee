// SPDX-License-Identifier: Apache-2.0
// The configuration file: sections and keys of the tree against the table.
#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent/config_sources.h"
#include "agent/config_suggest.h"
#include "agent/config_values.h"
#include "agent/config_yaml.h"

namespace switchyard::agent {
namespace {

using Kind = YamlNode::Kind;

bool IsSection(absl::string_view name) {
  const std::string prefix = absl::StrCat(name, ".");
  return std::any_of(Keys().begin(), Keys().end(),
                     [&](const Key& key) { return absl::StartsWith(key.name, prefix); });
}

std::vector<std::string> SectionsAndKeys() {
  std::set<std::string> names;
  for (const Key& key : Keys()) {
    const std::string name(key.name);
    names.insert(name);
    for (size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1)) {
      names.insert(name.substr(0, dot));
    }
  }
  return {names.begin(), names.end()};
}

absl::string_view KindName(Kind kind) {
  switch (kind) {
    case Kind::kNull:
      return "nothing";
    case Kind::kScalar:
      return "a single value";
    case Kind::kList:
      return "a list";
    case Kind::kMap:
      return "a map";
  }
  return "?";
}

class FileReader {
 public:
  explicit FileReader(absl::string_view file) : file_(file) {}

  Settings Read(const YamlNode& root) {
    if (root.kind == Kind::kMap) {
      ReadSection(root, "");
    } else if (root.kind != Kind::kNull) {
      Error(root.line, "the file must be a map of keys, like \"consumer: kubevirt\"");
    }
    return std::move(result_);
  }

 private:
  void Error(int line, absl::string_view message) {
    result_.AddError(absl::StrCat(file_, ":", line, ": ", message));
  }

  // Says whether the key is new in its map.
  bool CheckTwice(std::map<std::string, int>& seen, const YamlNode::Entry& entry,
                  absl::string_view name) {
    const auto [first, is_new] = seen.emplace(entry.key, entry.line);
    if (is_new) return true;
    Error(entry.line, absl::StrCat(name, " is set twice: line ", first->second, " has it too"));
    return false;
  }

  void ReadSection(const YamlNode& section, const std::string& prefix) {
    std::map<std::string, int> seen;
    for (const YamlNode::Entry& entry : section.entries) {
      const std::string name = absl::StrCat(prefix, entry.key);
      if (!CheckTwice(seen, entry, Shown(name))) continue;
      const bool dotted = absl::StrContains(entry.key, ".");
      if (const Key* key = dotted ? nullptr : FindKey(name); key != nullptr) {
        ReadKey(*key, entry);
      } else if (!dotted && IsSection(name)) {
        ReadNested(entry, name);
      } else {
        Unknown(entry, name);
      }
    }
  }

  void ReadNested(const YamlNode::Entry& entry, const std::string& name) {
    if (entry.value.kind == Kind::kMap) {
      ReadSection(entry.value, absl::StrCat(name, "."));
    } else if (entry.value.kind != Kind::kNull) {  // a section whose keys are all commented out
      Error(entry.line,
            absl::StrCat(name, ": must be a map of keys, not ", KindName(entry.value.kind)));
    }
  }

  void Unknown(const YamlNode::Entry& entry, const std::string& name) {
    const std::string nearest = Nearest(name, SectionsAndKeys());
    const absl::string_view how =
        absl::StrContains(entry.key, ".") ? " (sections are nested, not dotted)" : "";
    Error(entry.line,
          absl::StrCat(Shown(name), ": unknown key; the nearest valid one is ", nearest, how));
  }

  void ReadKey(const Key& key, const YamlNode::Entry& entry) {
    Setting setting{&key, {}, absl::StrCat(file_, ":", entry.line)};
    const Kind wanted = key.kind == KeyKind::kText   ? Kind::kScalar
                        : key.kind == KeyKind::kList ? Kind::kList
                                                     : Kind::kMap;
    if (entry.value.kind != wanted) {
      return Error(entry.line, absl::StrCat(key.name, ": must be ", KindName(wanted), " (",
                                            key.type, "), not ", KindName(entry.value.kind)));
    }
    setting.value.text = entry.value.text;
    for (const YamlNode& item : entry.value.items) {
      if (item.kind != Kind::kScalar) {
        return Error(item.line, absl::StrCat(key.name, ": its entries must be single values, not ",
                                             KindName(item.kind)));
      }
      setting.value.list.push_back(item.text);
    }
    std::map<std::string, int> seen;
    for (const YamlNode::Entry& pair : entry.value.entries) {
      const std::string name = absl::StrCat(key.name, ": ", Quote(pair.key));
      if (!CheckTwice(seen, pair, name)) return;
      if (pair.value.kind != Kind::kScalar) {
        return Error(pair.line, absl::StrCat(name, " must have a single value, not ",
                                             KindName(pair.value.kind)));
      }
      setting.value.map.emplace_back(pair.key, pair.value.text);
    }
    result_.settings.push_back(std::move(setting));
  }

  // Keys come from outside: bounded and escaped before they are shown.
  static std::string Shown(const std::string& name) {
    const std::string quoted = Quote(name);
    return quoted.size() == name.size() + 2 ? name : quoted;
  }

  const std::string file_;
  Settings result_;
};

}  // namespace

Settings FromFile(absl::string_view text, absl::string_view file_name) {
  const Result<YamlNode> root = ReadYaml(text, file_name);
  if (root.ok()) return FileReader(file_name).Read(*root);
  Settings failed;
  failed.AddError(std::string(root.status().message()));
  return failed;
}

}  // namespace switchyard::agent
