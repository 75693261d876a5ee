// SPDX-License-Identifier: Apache-2.0
#include "base/files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"

namespace switchyard {
namespace {

class FilesTest : public testing::Test {
 protected:
  FilesTest() {
    char name[] = "/tmp/files-XXXXXX";
    folder_ = ::mkdtemp(name);
    path_ = folder_ + "/file";
  }
  ~FilesTest() override { std::filesystem::remove_all(folder_); }

  static mode_t ModeOf(const std::string& path) {
    struct stat info{};
    EXPECT_EQ(::stat(path.c_str(), &info), 0) << path;
    return info.st_mode & 07777;
  }

  std::string folder_;
  std::string path_;
};

using Names = std::vector<std::string>;

TEST_F(FilesTest, ReadsBackWhatWasWritten) {
  const std::string content = std::string("a\0b", 3) + std::string(20000, 'x');
  ASSERT_TRUE(WriteFileAtomically(path_, content).ok());
  EXPECT_EQ(*ReadFile(path_, 30000), content);
  ASSERT_TRUE(WriteFileAtomically(path_, "short").ok());
  EXPECT_EQ(*ReadFile(path_, 5), "short");
  EXPECT_EQ(*ListFolder(folder_), Names{"file"});
}

TEST_F(FilesTest, ReadRefusesWhatIsTooLong) {
  ASSERT_TRUE(WriteFileAtomically(path_, "123456").ok());
  const auto content = ReadFile(path_, 5);
  EXPECT_EQ(content.status().code(), absl::StatusCode::kOutOfRange) << content.status();
  EXPECT_EQ(ReadFile("/dev/zero", 1 << 16).status().code(), absl::StatusCode::kOutOfRange);
}

TEST_F(FilesTest, ErrorsNameThePath) {
  for (const Status& status :
       {ReadFile(path_, 10).status(), ReadLink(path_).status(), ListFolder(path_).status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), path_)) << status;
  }
  EXPECT_FALSE(ReadFile(folder_, 10).ok());
}

TEST_F(FilesTest, ModeIsExactlyTheOneAskedForWhateverTheUmask) {
  const mode_t before = ::umask(077);
  ASSERT_TRUE(WriteFileAtomically(path_, "x", 0644).ok());
  EXPECT_EQ(ModeOf(path_), 0644u);
  ::umask(0);
  ASSERT_TRUE(WriteFileAtomically(path_, "x", 0600).ok());
  EXPECT_EQ(ModeOf(path_), 0600u);
  ::umask(before);
}

TEST_F(FilesTest, AFailedWriteLeavesTheOldContentAndNothingElse) {
  // The rename fails: the target is a folder that is not empty.
  ASSERT_TRUE(MakeFolders(path_ + "/inside").ok());
  const Status status = WriteFileAtomically(path_, "x");
  EXPECT_FALSE(status.ok());
  EXPECT_TRUE(absl::StrContains(status.message(), path_)) << status;
  EXPECT_EQ(*ListFolder(folder_), Names{"file"});
  EXPECT_EQ(*ListFolder(path_), Names{"inside"});
}

TEST_F(FilesTest, AFullDiskLeavesTheOldContentAndNothingElse) {
  // Every write to it fails with ENOSPC; the temporary file's name is made from our PID.
  const std::string temporary = path_ + "." + std::to_string(::getpid()) + ".tmp";
  std::ofstream(path_) << "old";
  std::filesystem::create_symlink("/dev/full", temporary);
  const Status status = WriteFileAtomically(path_, "new");
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_EQ(*ReadFile(path_, 10), "old");
  EXPECT_EQ(*ListFolder(folder_), Names{"file"});
}

TEST_F(FilesTest, WritingIntoAMissingFolderFails) {
  EXPECT_EQ(WriteFileAtomically(folder_ + "/no/file", "x").code(), absl::StatusCode::kNotFound);
}

TEST_F(FilesTest, MakesEveryFolderWithTheMode) {
  const mode_t before = ::umask(0);
  ASSERT_TRUE(MakeFolders(folder_ + "/a/b/c", 0700).ok());
  ASSERT_TRUE(MakeFolders(folder_ + "/a/b/c/", 0755).ok()) << "there already";
  ::umask(before);
  EXPECT_EQ(ModeOf(folder_ + "/a"), 0700u);
  EXPECT_EQ(ModeOf(folder_ + "/a/b/c"), 0700u);
}

TEST_F(FilesTest, AFileInTheWayOfAFolderIsNamed) {
  std::ofstream(path_) << "x";
  for (const std::string& path : {path_, path_ + "/deeper"}) {
    const Status status = MakeFolders(path);
    EXPECT_FALSE(status.ok());
    EXPECT_TRUE(absl::StrContains(status.message(), path_)) << status;
  }
}

TEST_F(FilesTest, ListsSortedAndReadsLinks) {
  for (const char* name : {"b", "a", ".hidden"}) std::ofstream(folder_ + "/" + name) << "";
  std::filesystem::create_symlink("../nowhere/target", folder_ + "/c");
  EXPECT_EQ(*ListFolder(folder_), (Names{".hidden", "a", "b", "c"}));
  EXPECT_EQ(*ReadLink(folder_ + "/c"), "../nowhere/target");
  EXPECT_FALSE(ReadLink(folder_ + "/a").ok());
}

}  // namespace
}  // namespace switchyard
