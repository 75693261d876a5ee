// SPDX-License-Identifier: Apache-2.0
#include "base/lock_owner.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace switchyard {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class LockOwnerTest : public testing::Test {
 protected:
  LockOwnerTest() {
    char name[] = "/tmp/owner-XXXXXX";
    folder_ = ::mkdtemp(name);
    path_ = folder_ + "/lock";
  }
  ~LockOwnerTest() override { std::filesystem::remove_all(folder_); }

  Result<LockOwner> Read(const std::string& text) {
    std::ofstream(path_) << text;
    return ReadLockOwner(path_);
  }

  std::string folder_;
  std::string path_;
};

TEST_F(LockOwnerTest, WhatIsWrittenIsRead) {
  const LockOwner owner = {7, "switchyard agent --config x", "pod-a", "/kubepods/pod1/c",
                           "2026-11-30T01:02:03Z"};
  const Result<LockOwner> read = Read(LockOwnerText(owner));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->Describe(),
            "process 7 (switchyard agent --config x) on host pod-a, cgroup /kubepods/pod1/c, since "
            "2026-11-30T01:02:03Z");
}

TEST_F(LockOwnerTest, APidAloneIsEnough) {
  const Result<LockOwner> read = Read("12\n");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->Describe(), "process 12");
}

TEST_F(LockOwnerTest, NonsenseIsNobody) {
  for (const char* text : {"", "no number\n", "0\n", "-3\n", "\n12\n"}) {
    EXPECT_EQ(Read(text).status().code(), absl::StatusCode::kDataLoss) << text;
  }
  EXPECT_EQ(ReadLockOwner(folder_ + "/no").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(LockOwnerTest, AHostileCommandStaysInItsLine) {
  LockOwner owner = {7, "a", "h", "/", ""};
  owner.command = "x\x1b[2J";
  const Result<LockOwner> read = Read(LockOwnerText(owner));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->command, "x [2J");
  EXPECT_EQ(read->Describe(), "process 7 (x [2J) on host h") << "the root cgroup says nothing";
}

TEST_F(LockOwnerTest, ThisProcessIsDescribedAsItIs) {
  const LockOwner owner = ThisProcess();
  EXPECT_EQ(owner.pid, ::getpid());
  EXPECT_THAT(owner.command, HasSubstr("base_test"));
  EXPECT_FALSE(owner.host.empty());
  EXPECT_THAT(owner.cgroup, StartsWith("/"));
  EXPECT_EQ(owner.since.size(), 20U) << owner.since;
}

}  // namespace
}  // namespace switchyard
