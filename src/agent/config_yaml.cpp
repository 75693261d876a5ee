// SPDX-License-Identifier: Apache-2.0
#include "agent/config_yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <optional>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "agent/config_values.h"

namespace switchyard::agent {
namespace {

constexpr size_t kMaxDepth = 8;
constexpr int kMaxNodes = 4096;

// Leaves the parser; caught in ReadYaml.
struct Refused {
  int line;
  std::string message;
};

int Line(const YAML::Mark& mark) { return mark.line + 1; }

// Builds the tree from the parser's events.
class TreeBuilder final : public YAML::EventHandler {
 public:
  YamlNode Take() { return std::move(root_); }
  // Where the last quoted (or block) scalar begins.
  [[nodiscard]] const std::optional<YAML::Mark>& last_quoted() const { return last_quoted_; }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Add(mark, "", anchor, YamlNode::Kind::kNull, "");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    if (tag == "!") last_quoted_ = mark;
    Add(mark, tag, anchor, YamlNode::Kind::kScalar, text);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    throw Refused{Line(mark), "aliases (*name) are not allowed here: write the value"};
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(mark, Add(mark, tag, anchor, YamlNode::Kind::kList, ""));
  }
  void OnSequenceEnd() override { open_.pop_back(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Open(mark, Add(mark, tag, anchor, YamlNode::Kind::kMap, ""));
  }
  void OnMapEnd() override { open_.pop_back(); }

 private:
  // A list or map whose content is being read. Pointers stay good: a node's children are added only
  // while it is the innermost open one.
  struct Level {
    YamlNode* node;
    std::optional<YamlNode::Entry> key;  // of a map: read, its value not yet
  };

  YamlNode* Add(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                YamlNode::Kind kind, const std::string& text) {
    const int line = Line(mark);
    if (++nodes_ > kMaxNodes) throw Refused{line, "too many values for a configuration"};
    if (anchor != 0) throw Refused{line, "anchors (&name) are not allowed here"};
    // "?" and "!" are the parser's own, for plain and for quoted values.
    if (!tag.empty() && tag != "?" && tag != "!") {
      throw Refused{line, absl::StrCat("tags (", Quote(tag), ") are not allowed here")};
    }
    YamlNode node;
    node.kind = kind;
    node.line = line;
    node.text = text;
    if (open_.empty()) {
      root_ = std::move(node);
      return &root_;
    }
    Level& level = open_.back();
    if (level.node->kind == YamlNode::Kind::kList) {
      level.node->items.push_back(std::move(node));
      return &level.node->items.back();
    }
    if (!level.key.has_value()) {
      if (kind != YamlNode::Kind::kScalar) throw Refused{line, "a key must be a plain word"};
      level.key = YamlNode::Entry{text, line, {}};
      return nullptr;
    }
    level.key->value = std::move(node);
    level.node->entries.push_back(*std::move(level.key));
    level.key.reset();
    return &level.node->entries.back().value;
  }

  void Open(const YAML::Mark& mark, YamlNode* node) {
    if (open_.size() == kMaxDepth) throw Refused{Line(mark), "nested too deep"};
    open_.push_back({node, std::nullopt});
  }

  YamlNode root_;
  std::vector<Level> open_;
  std::optional<YAML::Mark> last_quoted_;
  int nodes_ = 0;
};

// yaml-cpp takes the end of the text for a missing closing quote, so a file that was cut off would
// pass with half a value.
bool IsClosed(absl::string_view text, const YAML::Mark& begin) {
  const auto position = static_cast<size_t>(begin.pos);
  if (position >= text.size()) return true;
  const char quote = text[position];
  if (quote != '"' && quote != '\'') return true;  // a block scalar
  for (size_t i = position + 1; i < text.size(); ++i) {
    if (quote == '"' && text[i] == '\\') {
      ++i;
    } else if (text[i] == quote) {
      if (quote == '"' || i + 1 == text.size() || text[i + 1] != quote) return true;
      ++i;  // '' is one quote inside
    }
  }
  return false;
}

Status At(absl::string_view file, int line, absl::string_view message) {
  return absl::InvalidArgumentError(absl::StrCat(file, ":", line, ": ", message));
}

// yaml-cpp reads any bytes; a control character in a configuration is a broken or binary file.
Status CheckText(absl::string_view text, absl::string_view file) {
  if (text.size() > kMaxConfigBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, ": longer than ", kMaxConfigBytes, " bytes"));
  }
  const auto bad = std::find_if(text.begin(), text.end(), [](unsigned char c) {
    return absl::ascii_iscntrl(c) && c != '\n' && c != '\r' && c != '\t';
  });
  if (bad == text.end()) return OkStatus();
  const int line = 1 + static_cast<int>(std::count(text.begin(), bad, '\n'));
  return At(file, line, "a control character: this is no text file");
}

}  // namespace

Result<YamlNode> ReadYaml(absl::string_view text, absl::string_view file_name) {
  absl::ConsumePrefix(&text, "\xEF\xBB\xBF");  // a byte order mark; marks don't count it
  RETURN_IF_ERROR(CheckText(text, file_name));
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    TreeBuilder builder;
    if (!parser.HandleNextDocument(builder)) return YamlNode{};
    if (builder.last_quoted().has_value() && !IsClosed(text, *builder.last_quoted())) {
      return At(file_name, Line(*builder.last_quoted()), "no YAML: the quote is not closed");
    }
    TreeBuilder second;
    if (parser.HandleNextDocument(second)) {
      return absl::InvalidArgumentError(
          absl::StrCat(file_name, ": more than one document (---) in the file"));
    }
    return builder.Take();
  } catch (const Refused& refused) {
    return At(file_name, refused.line, refused.message);
  } catch (const YAML::Exception& error) {
    return At(file_name, Line(error.mark), absl::StrCat("no YAML: ", error.msg));
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat(file_name, ": no YAML: ", error.what()));
  }
}

}  // namespace switchyard::agent
