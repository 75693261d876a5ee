// SPDX-License-Identifier: Apache-2.0
#include "agent/config_yaml.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"

namespace switchyard::agent {
namespace {

using ::testing::HasSubstr;
using Kind = YamlNode::Kind;

// The error's text, or "" if it was read.
std::string ErrorOf(const std::string& text) {
  return std::string(ReadYaml(text, "f").status().message());
}

TEST(YamlTest, KeepsOrderLinesAndText) {
  const auto root = ReadYaml("a: off\n\nb:\n  - 0x2330\n  - \"\"\nc: {d: 15s}\n", "f");
  ASSERT_TRUE(root.ok()) << root.status();
  ASSERT_EQ(root->entries.size(), 3u);
  EXPECT_EQ(root->entries[0].key, "a");
  EXPECT_EQ(root->entries[0].value.text, "off");
  EXPECT_EQ(root->entries[1].line, 3);
  ASSERT_EQ(root->entries[1].value.items.size(), 2u);
  EXPECT_EQ(root->entries[1].value.items[0].text, "0x2330");
  EXPECT_EQ(root->entries[1].value.items[1].kind, Kind::kScalar);
  EXPECT_EQ(root->entries[1].value.items[1].line, 5);
  EXPECT_EQ(root->entries[2].value.entries[0].value.text, "15s");
}

TEST(YamlTest, NothingIsNull) {
  for (const char* text : {"", "\n", "# only a comment\n", "---\n"}) {
    const auto root = ReadYaml(text, "f");
    ASSERT_TRUE(root.ok()) << text << root.status();
    EXPECT_EQ(root->kind, Kind::kNull) << text;
  }
}

TEST(YamlTest, RepeatedKeysAreKeptForTheReader) {
  const auto root = ReadYaml("a: 1\na: 2\n", "f");
  ASSERT_TRUE(root.ok());
  EXPECT_EQ(root->entries.size(), 2u);
}

TEST(YamlTest, RefusesAnchorsAliasesTagsAndComplexKeys) {
  EXPECT_THAT(ErrorOf("a: &x 1\nb: *x\n"), HasSubstr("f:1: anchors"));
  EXPECT_THAT(ErrorOf("b: *x\n"), HasSubstr("f:1: "));
  EXPECT_THAT(ErrorOf("\na: !!binary aGVsbG8=\n"), HasSubstr("f:2: tags"));
  EXPECT_THAT(ErrorOf("? [a, b]\n: c\n"), HasSubstr("a key must be"));
}

TEST(YamlTest, AnAliasBombStopsAtItsFirstAnchor) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 30; ++i) {
    absl::StrAppend(&bomb, "a", i, ": &a", i, " [");
    for (int j = 0; j < 9; ++j) absl::StrAppend(&bomb, "*a", i - 1, j < 8 ? "," : "]\n");
  }
  EXPECT_THAT(ErrorOf(bomb), HasSubstr("f:1: anchors"));
}

TEST(YamlTest, RefusesWhatIsTooDeepTooManyOrTooLong) {
  EXPECT_THAT(ErrorOf(std::string(10000, '[')), HasSubstr("f:1: "));
  std::string nested;
  for (int i = 0; i < 20; ++i) absl::StrAppend(&nested, std::string(i, ' '), "a:\n");
  EXPECT_THAT(ErrorOf(nested), HasSubstr("nested too deep"));
  std::string many = "[";
  for (int i = 0; i < 5000; ++i) many += "1,";
  EXPECT_THAT(ErrorOf(many + "1]"), HasSubstr("too many values"));
  EXPECT_THAT(ErrorOf(std::string(kMaxConfigBytes + 1, ' ')), HasSubstr("longer than 65536 bytes"));
}

TEST(YamlTest, RefusesBinaryAndBrokenText) {
  EXPECT_THAT(ErrorOf(std::string("a: 1\nb: \0\n", 10)), HasSubstr("f:2: a control character"));
  EXPECT_THAT(ErrorOf("\x7f\x45LF"), HasSubstr("no text file"));
  EXPECT_THAT(ErrorOf("a: 1\n\tb: 2\n"), HasSubstr("f:2: no YAML"));
  EXPECT_THAT(ErrorOf("é: 1\na: \"/var/li\n"), HasSubstr("f:2: no YAML: the quote is not closed"));
  EXPECT_THAT(ErrorOf("a: 'it''s\n"), HasSubstr("f:1: no YAML: the quote is not closed"));
  EXPECT_EQ(ErrorOf("\xEF\xBB\xBF"
                    "a: \"x\\\"y\"\nb: 'it''s'\nc: |\n  'text\n"),
            "");
  EXPECT_THAT(ErrorOf("a: [1, 2\n"), HasSubstr("no YAML"));
  EXPECT_THAT(ErrorOf("a: b: c\n"), HasSubstr("f:1: no YAML"));
}

TEST(YamlTest, RefusesASecondDocument) {
  EXPECT_THAT(ErrorOf("a: 1\n---\na: 2\n"), HasSubstr("more than one document"));
}

}  // namespace
}  // namespace switchyard::agent
