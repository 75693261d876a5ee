// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/files.h"
#include "base/unique_fd.h"

namespace switchyard {
namespace {

// What `body` writes to standard error.
std::string Captured(const std::function<void()>& body) {
  char name[] = "/tmp/log-XXXXXX";
  const UniqueFd file(::mkostemp(name, O_CLOEXEC));
  const UniqueFd before(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3));
  ::dup2(file.get(), STDERR_FILENO);
  body();
  ::dup2(before.get(), STDERR_FILENO);
  std::string text = ReadFile(name, 1 << 20).value();
  ::unlink(name);
  return text;
}

nlohmann::json JsonLine(const std::string& text) {
  EXPECT_TRUE(absl::EndsWith(text, "\n"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
  auto line = nlohmann::json::parse(text, nullptr, false);
  EXPECT_FALSE(line.is_discarded()) << text;
  return line;
}

class LogTest : public testing::Test {
 protected:
  ~LogTest() override { InitLogging(LogFormat::kText, Severity::kInfo); }
};

TEST_F(LogTest, TextIsKeyEqualsValue) {
  const std::string line = Captured([] {
    Log(Severity::kWarning, "two words", {{"pci", "0000:19:00.0"}, {"empty", ""}, {"path", "a=b"}});
  });
  EXPECT_TRUE(absl::StartsWith(line, "time=2")) << line;
  EXPECT_TRUE(absl::EndsWith(line,
                             " level=warning msg=\"two words\" pci=0000:19:00.0 empty=\"\" "
                             "path=\"a=b\"\n"))
      << line;
}

TEST_F(LogTest, NothingInAValueCanMakeASecondLineOrReachTheTerminal) {
  const std::string line = Captured([] {
    Log(Severity::kInfo, "x",
        {{"a", "1\nlevel=error msg=forged"}, {"b", "\x1b[2J"}, {"c", "\x9b"}});
  });
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1) << line;
  EXPECT_FALSE(absl::StrContains(line, "\x1b")) << line;
  EXPECT_FALSE(absl::StrContains(line, "\x9b")) << line;
}

TEST_F(LogTest, JsonHasEveryFieldAsItWas) {
  InitLogging(LogFormat::kJson, Severity::kInfo);
  const std::string nasty = std::string("\"\\\n\r\t\b\0\x1f\x7f/", 10) + "é €  𝄞 {}";
  const auto line =
      JsonLine(Captured([&] { Log(Severity::kError, nasty, {{"key", nasty}, {"plain", "v"}}); }));
  EXPECT_EQ(line["msg"], nasty);
  EXPECT_EQ(line["key"], nasty);
  EXPECT_EQ(line["plain"], "v");
  EXPECT_EQ(line["level"], "error");
  EXPECT_EQ(std::string(line["time"]).size(), std::string("2026-01-31T23:59:59.123Z").size());
}

TEST_F(LogTest, BytesThatAreNoUtf8StayValidJson) {
  InitLogging(LogFormat::kJson, Severity::kInfo);
  const std::vector<std::string> broken = {
      "\xff",         "\xc3",         "a\xc3z",           "\x80",     "\xc0\xaf",
      "\xe2\x82",     "\xed\xa0\x80", "\xe0\x80\xaf",     "\xf5\x80", "\xf4\x90\x80\x80",
      "\xf0\x9d\x84", "\xc1\xbf",     "\xf0\x80\x80\x80", "\xe2(\xa1"};
  for (const std::string& bytes : broken) {
    const auto line = JsonLine(Captured([&] { Log(Severity::kInfo, bytes, {{"k", bytes}}); }));
    EXPECT_TRUE(absl::StrContains(std::string(line["k"]), "\xef\xbf\xbd"));
  }
  const auto line = JsonLine(Captured([&] { Log(Severity::kInfo, "m", {{"k", "a\xc3z"}}); }));
  EXPECT_EQ(line["k"], "a\xef\xbf\xbdz") << "only the byte that is wrong";
}

TEST_F(LogTest, ALongValueIsCutBetweenCharacters) {
  InitLogging(LogFormat::kJson, Severity::kInfo);
  for (const int before : {0, 1, 2}) {
    std::string value(static_cast<size_t>(before), 'x');
    for (int i = 0; i < 5000; ++i) value += "€";
    const auto line = JsonLine(Captured([&] { Log(Severity::kInfo, value, {{"k", value}}); }));
    const std::string logged = line["k"];
    EXPECT_LE(logged.size(), 4100u);
    EXPECT_TRUE(absl::StartsWith(value, logged));
    EXPECT_EQ((logged.size() - static_cast<size_t>(before)) % 3, 0u);
  }
  InitLogging(LogFormat::kText, Severity::kInfo);
  EXPECT_LT(Captured([] { Log(Severity::kInfo, std::string(100000, 'x')); }).size(), 5000u);
}

TEST_F(LogTest, TheLevelHolds) {
  InitLogging(LogFormat::kText, Severity::kWarning);
  EXPECT_EQ(Captured([] { Log(Severity::kInfo, "quiet"); }), "");
  EXPECT_NE(Captured([] { Log(Severity::kWarning, "loud"); }), "");
  InitLogging(LogFormat::kText, Severity::kDebug);
  EXPECT_TRUE(absl::StrContains(Captured([] { Log(Severity::kDebug, "fine"); }), "level=debug"));
}

TEST_F(LogTest, AnEventIsALineWithItsName) {
  InitLogging(LogFormat::kJson, Severity::kInfo);
  const auto line = JsonLine(Captured([] {
    LogEvent({"fabric_down", Severity::kWarning, "FM is away", {{"code", "UNAVAILABLE"}}});
  }));
  EXPECT_EQ(line["event"], "fabric_down");
  EXPECT_EQ(line["msg"], "FM is away");
  EXPECT_EQ(line["code"], "UNAVAILABLE");
  EXPECT_EQ(line["level"], "warning");
}

}  // namespace
}  // namespace switchyard
