// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "fabric/module_map.h"

namespace switchyard::fabric {
namespace {

using ::testing::HasSubstr;

PciAddress Address(absl::string_view text) { return PciAddress::Parse(text).value(); }

TEST(ParseModuleMap, TakesEverySpellingAndBothValueTypes) {
  const auto map = ParseModuleMap(
      R"({"00000000:1B:00.0": "1", "0000:43:00.0": 2, "5a:00.0": "16", "1:0F:00.0": 10})", "m");
  ASSERT_TRUE(map.ok()) << map.status();
  EXPECT_EQ(*map, (ModuleEntries{{Address("0000:1b:00.0"), 1},
                                 {Address("0000:43:00.0"), 2},
                                 {Address("0000:5a:00.0"), 16},
                                 {Address("0001:0f:00.0"), 10}}));
  EXPECT_EQ(ParseModuleMap(" {}\n", "m").value(), ModuleEntries());
}

TEST(ParseModuleMap, ComesBackAsItWasWritten) {
  const ModuleEntries entries = {{Address("10000:ff:1f.7"), 16}, {Address("0f:00.0"), 5}};
  const std::string text = FormatModuleMap(entries);
  EXPECT_EQ(text, "{\n  \"0000:0f:00.0\": \"5\",\n  \"10000:ff:1f.7\": \"16\"\n}\n");
  EXPECT_EQ(ParseModuleMap(text, "m").value(), entries);
  EXPECT_EQ(ParseModuleMap(FormatModuleMap({}), "m").value(), ModuleEntries());
}

std::string Refusal(absl::string_view text) {
  const auto map = ParseModuleMap(text, "/run/map.json");
  EXPECT_EQ(map.status().code(), absl::StatusCode::kInvalidArgument) << text.substr(0, 100);
  const std::string message(map.status().message());
  EXPECT_THAT(message, HasSubstr("/run/map.json: "));
  EXPECT_LT(message.size(), 400u);
  return message;
}

TEST(ParseModuleMap, RefusesEveryValueThatIsNoModuleId) {
  for (const char* value : {"0",          "17",         "-1",
                            "1.5",        "1.0",        "1e0",
                            "1E1",        "true",       "null",
                            "\"\"",       "\"0\"",      "\"17\"",
                            "\"01\"",     "\" 1\"",     "\"1 \"",
                            "\"+1\"",     "\"-1\"",     "\"1.0\"",
                            "\"0x1\"",    "\"one\"",    "\"1\\u0000\"",
                            "[1]",        "{}",         "[]",
                            "{\"a\": 1}", "4294967297", "18446744073709551616",
                            "1e400"}) {
    const std::string message = Refusal(absl::StrCat("{\"0000:19:00.0\": ", value, "}"));
    if (std::string(value) == "1e400") continue;  // the JSON itself is refused
    EXPECT_THAT(message, HasSubstr("\"0000:19:00.0\": value ")) << value;
    EXPECT_THAT(message, HasSubstr("a whole number from 1 to 16")) << value;
  }
}

TEST(ParseModuleMap, RefusesEveryKeyThatIsNoAddress) {
  for (const char* key :
       {"", "gpu0", "19:00", "0000:19:00.8", "0000:19:20.0", " 0000:19:00.0", "0000:19:00.0 ",
        "0000:19:00.0\\u0000", "000000000:19:00.0", "0x0:19:00.0", "0000:19:00.0\\n0000:20:00.0"}) {
    EXPECT_THAT(Refusal(absl::StrCat("{\"", key, "\": 1}")), HasSubstr("must be a PCI address"));
  }
}

TEST(ParseModuleMap, RefusesAModuleTwice) {
  const std::string message = Refusal(R"({"0000:19:00.0": 3, "0000:20:00.0": "3"})");
  EXPECT_THAT(message,
              HasSubstr("\"0000:20:00.0\": module 3 is already given to \"0000:19:00.0\""));
}

TEST(ParseModuleMap, RefusesAnAddressTwice) {
  // In two spellings, with the same value or another, and in the same spelling.
  EXPECT_THAT(Refusal(R"({"0000:1b:00.0": 1, "00000000:1B:00.0": 2})"),
              HasSubstr("0000:1b:00.0 stands here a second time"));
  EXPECT_THAT(Refusal(R"({"1b:00.0": 1, "0000:1b:00.0": 1})"), HasSubstr("a second time"));
  EXPECT_THAT(Refusal(R"({"0000:1b:00.0": 1, "0000:1b:00.0": 2})"),
              HasSubstr("key \"0000:1b:00.0\" appears twice"));
}

TEST(ParseModuleMap, RefusesWhatIsNoFlatObject) {
  for (absl::string_view text :
       {"", " ", "null", "[]", "\"x\"", "1", "[{\"0000:19:00.0\": 1}]", "{\"0000:19:00.0\": 1",
        "{\"0000:19:00.0\"", "{\"0000:19:00.0\": 1,}", "{\"0000:19:00.0\": 1}x", "{} {}",
        "{\"0000:19:00.0\": 01}", "{'0000:19:00.0': 1}", "// c\n{}", "{\"\xff\": 1}"}) {
    Refusal(text);
  }
  EXPECT_THAT(Refusal(R"({"modules": {"0000:19:00.0": 1}})"), HasSubstr("\"modules\""));
}

TEST(ParseModuleMap, RefusesNulBytes) {
  using namespace std::string_literals;
  Refusal("{\"0000:19:00.0\": 1}\0"s);
  Refusal("{\"0000:19:00.0\": 1\0}"s);
  Refusal("{\"0000:19:00.0\0\": 1}"s);
  Refusal("\0{\"0000:19:00.0\": 1}"s);
}

TEST(ParseModuleMap, RefusesHugeAndDeepText) {
  EXPECT_THAT(Refusal(std::string(64 * 1024 + 1, ' ')), HasSubstr("65537 bytes"));
  EXPECT_THAT(Refusal(std::string(60000, '[')), HasSubstr("nested deeper"));
  std::string deep = "1";
  for (int i = 0; i < 5000; ++i) deep = absl::StrCat("{\"a\":", deep, "}");
  EXPECT_THAT(Refusal(deep), HasSubstr("nested deeper"));
  // A large key or value is not repeated in full.
  Refusal(absl::StrCat("{\"", std::string(60000, 'a'), "\": 1}"));
  Refusal(absl::StrCat("{\"0000:19:00.0\": \"", std::string(60000, 'a'), "\"}"));
  Refusal(absl::StrCat("{\"", std::string(60000, 'a')));
}

TEST(ParseModuleMap, MessagesCarryNoControlCharacters) {
  for (absl::string_view text : {"{\"a\\n\\u001b[31mx\": 1}", "{\"0000:19:00.0\": \"\\n\\u0007\"}",
                                 "{\"\x1b[31m\": 1}", "{\"a\\nb\": 1, \"a\\nb\": 1}"}) {
    for (char c : Refusal(text)) EXPECT_GE(static_cast<unsigned char>(c), 0x20) << text;
  }
}

}  // namespace
}  // namespace switchyard::fabric
