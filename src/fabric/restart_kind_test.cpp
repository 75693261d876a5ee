// SPDX-License-Identifier: Apache-2.0
#include "fabric/restart_kind.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "fabric/fabric_answer.h"

namespace switchyard::fabric {
namespace {

using absl::StatusCode;

// A literal with zero bytes inside.
template <std::size_t N>
constexpr absl::string_view Words(const char (&text)[N]) {
  return {text, N - 1};
}

constexpr absl::string_view kWarmLine = Words("nv-fabricmanager\0-c\0/etc/x.cfg\0--restart\0");

class RestartKindTest : public testing::Test {
 protected:
  RestartKindTest() {
    char folder[] = "/tmp/swy-restart-XXXXXX";
    folder_ = ::mkdtemp(folder);
    EXPECT_TRUE(MakeFolders(folder_ + "/proc/sys").ok());
  }
  ~RestartKindTest() override { std::filesystem::remove_all(folder_); }

  void Config(absl::string_view text) { ASSERT_TRUE(WriteFileAtomically(ConfigPath(), text).ok()); }
  void Process(int pid, absl::string_view command_line) {
    const std::string folder = absl::StrCat(folder_, "/proc/", pid);
    ASSERT_TRUE(MakeFolders(folder).ok());
    ASSERT_TRUE(WriteFileAtomically(folder + "/cmdline", command_line).ok());
  }
  Result<RestartKind> Find(RestartSetting setting = RestartSetting::kAuto) {
    return FindRestartKind(setting, ConfigPath(), HostRoot(folder_));
  }
  std::string ConfigPath() const { return folder_ + "/fabricmanager.cfg"; }

  std::string folder_;
};

TEST_F(RestartKindTest, NothingOnTheHostSaysWarm) {
  const Result<RestartKind> kind = Find();
  ASSERT_TRUE(kind.ok()) << kind.status();
  EXPECT_FALSE(kind->warm);
  Process(7, Words("nv-fabricmanager\0-c\0x\0"));
  Process(8, Words("grep\0--restart\0nv-fabricmanager\0"));
  Process(9, "");  // a kernel thread
  Config("# FABRIC_MODE_RESTART=1\nFABRIC_MODE=1\nFABRIC_MODE_RESTART=0\n");
  EXPECT_FALSE(Find()->warm);
}

TEST_F(RestartKindTest, TheFileSaysWarm) {
  Config("FABRIC_MODE=1\nFABRIC_MODE_RESTART=1\n");
  const Result<RestartKind> kind = Find();
  ASSERT_TRUE(kind.ok()) << kind.status();
  EXPECT_TRUE(kind->warm);
  EXPECT_NE(kind->why.find(ConfigPath()), std::string::npos) << kind->why;
}

TEST_F(RestartKindTest, TheRunningFabricManagerSaysWarm) {
  Config("FABRIC_MODE_RESTART=0\n");
  Process(4711, kWarmLine);
  const Result<RestartKind> kind = Find();
  ASSERT_TRUE(kind.ok()) << kind.status();
  EXPECT_TRUE(kind->warm);
  EXPECT_NE(kind->why.find("4711"), std::string::npos) << kind->why;
}

TEST_F(RestartKindTest, TheSettingIsTakenAtItsWord) {
  Config("FABRIC_MODE_RESTART=1\n");
  EXPECT_FALSE(Find(RestartSetting::kCold)->warm);
  Config("FABRIC_MODE_RESTART=maybe\n");
  EXPECT_TRUE(Find(RestartSetting::kWarm)->warm);
}

TEST_F(RestartKindTest, WhatCantBeReadIsAnError) {
  Config("FABRIC_MODE_RESTART=yes\n");
  const Status value = Find().status();
  EXPECT_EQ(value.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(value.message().find("line 1: FABRIC_MODE_RESTART \"yes\""), absl::string_view::npos)
      << value;
  std::filesystem::remove(ConfigPath());
  ASSERT_TRUE(MakeFolders(ConfigPath()).ok());  // a folder where the file should be
  const Status file = Find().status();
  EXPECT_FALSE(file.ok());
  EXPECT_NE(file.message().find("set fabric.restart"), absl::string_view::npos) << file;
  std::filesystem::remove_all(ConfigPath());
  std::filesystem::remove_all(folder_ + "/proc");
  EXPECT_FALSE(Find().ok());
}

TEST(ConfigSaysRestart, ReadsTheLineAsPeopleWriteIt) {
  for (const char* yes : {"FABRIC_MODE_RESTART=1", " FABRIC_MODE_RESTART = 1 \r\nA=2",
                          "FABRIC_MODE_RESTART=1\nFABRIC_MODE_RESTART=1"}) {
    EXPECT_TRUE(ConfigSaysRestart(yes, "f").value()) << yes;
  }
  for (const char* no : {"", "FABRIC_MODE_RESTART=0", "FABRIC_MODE_RESTART_X=1",
                         "#FABRIC_MODE_RESTART=1", "FABRIC_MODE=1"}) {
    EXPECT_FALSE(ConfigSaysRestart(no, "f").value()) << no;
  }
  for (const char* bad :
       {"FABRIC_MODE_RESTART=", "FABRIC_MODE_RESTART=2", "FABRIC_MODE_RESTART=1 # yes",
        "FABRIC_MODE_RESTART=0\nFABRIC_MODE_RESTART=1"}) {
    EXPECT_EQ(ConfigSaysRestart(bad, "f").status().code(), StatusCode::kInvalidArgument) << bad;
  }
}

TEST(IsRestartingFabricManager, GoesByProgramAndWholeWords) {
  EXPECT_TRUE(IsRestartingFabricManager(kWarmLine));
  EXPECT_TRUE(IsRestartingFabricManager(Words("/usr/bin/nv-fabricmanager\0--restart")));
  EXPECT_FALSE(IsRestartingFabricManager(Words("nv-fabricmanager\0--restart-x\0")));
  EXPECT_FALSE(IsRestartingFabricManager(Words("nv-fabricmanager2\0--restart\0")));
  EXPECT_FALSE(IsRestartingFabricManager("--restart"));
  EXPECT_FALSE(IsRestartingFabricManager(""));
}

// A failed read by its function and code.
Status Read(const char* function, int code) {
  return WithFabricAnswer(absl::UnavailableError("x"), {function, code});
}

TEST(MayWaitForActiveList, OnlyOneWhoseListCallIsRefused) {
  const char* list = "fmGetSupportedFabricPartitions";
  for (const int code : {-8, -22, -2, -1, -5, -99}) {
    EXPECT_TRUE(MayWaitForActiveList(Read(list, code), false)) << code;
    EXPECT_FALSE(MayWaitForActiveList(Read("fmConnect", code), true)) << code;
  }
  for (const int code : {-3, -6, -9}) {
    EXPECT_FALSE(MayWaitForActiveList(Read(list, code), true)) << code;
  }
  EXPECT_TRUE(MayWaitForActiveList(Read(list, -4), true));
  EXPECT_FALSE(MayWaitForActiveList(Read(list, -4), false)) << "FM's internal endpoint";
  EXPECT_FALSE(MayWaitForActiveList(absl::DeadlineExceededError("x"), true));
  EXPECT_FALSE(MayWaitForActiveList(OkStatus(), true));
}

}  // namespace
}  // namespace switchyard::fabric
