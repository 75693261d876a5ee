// SPDX-License-Identifier: Apache-2.0
#include "store/store.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "store/sqlite.h"

namespace switchyard::store {
namespace {

class StoreTest : public testing::Test {
 protected:
  StoreTest() {
    char name[] = "/tmp/store-XXXXXX";
    folder_ = ::mkdtemp(name);
    file_ = absl::StrCat(folder_, "/switchyard.db");
  }
  ~StoreTest() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<Store> OpenForWriting() {
    Result<Store::Opened> opened = Store::Open(folder_, Store::Mode::kReadWrite);
    EXPECT_TRUE(opened.ok()) << opened.status();
    if (!opened.ok()) return nullptr;
    set_aside_ = opened->set_aside;
    return std::move(opened->store);
  }

  std::string Content() { return *ReadFile(file_, 1 << 20); }
  void Write(absl::string_view content) {
    std::ofstream(file_, std::ios::binary) << std::string(content);
  }
  // Edits the file as somebody else would, with SQLite itself.
  void Sql(const std::string& sql) {
    sqlite3* handle = nullptr;
    ASSERT_EQ(::sqlite3_open(file_.c_str(), &handle), SQLITE_OK);
    const Database database(handle);
    ASSERT_TRUE(Execute(handle, sql).ok()) << ::sqlite3_errmsg(handle);
  }
  std::vector<std::string> Names() { return *ListFolder(folder_); }

  std::string folder_;
  std::string file_;
  std::optional<std::string> set_aside_;
};

std::optional<std::string> Value(Store& store, absl::string_view kind, absl::string_view key) {
  const auto value = store.Get(kind, key);
  EXPECT_TRUE(value.ok()) << value.status();
  return value.value_or(std::nullopt);
}

TEST_F(StoreTest, KeepsFactsOverAReopen) {
  const std::string bytes("a\0b\xff\"'", 6);
  {
    auto store = OpenForWriting();
    ASSERT_TRUE(store->Put("map", "a", "1").ok());
    ASSERT_TRUE(store->Put("map", "b", bytes).ok());
    ASSERT_TRUE(store->Put("map", "a", "2").ok());
    ASSERT_TRUE(store->Put("list", "a", "").ok());
    ASSERT_TRUE(store->Put("map", "gone", "x").ok());
    ASSERT_TRUE(store->Remove("map", "gone").ok());
    ASSERT_TRUE(store->Remove("map", "never there").ok());
  }
  EXPECT_EQ(Names(), std::vector<std::string>{"switchyard.db"}) << "closed without leftovers";
  auto store = OpenForWriting();
  EXPECT_EQ(set_aside_, std::nullopt);
  EXPECT_EQ(Value(*store, "map", "a"), "2");
  EXPECT_EQ(Value(*store, "map", "b"), bytes);
  EXPECT_EQ(Value(*store, "map", "gone"), std::nullopt);
  EXPECT_EQ(Value(*store, "list", "a"), "");
  EXPECT_EQ(*store->List("map"), (std::map<std::string, std::string>{{"a", "2"}, {"b", bytes}}));
  EXPECT_TRUE(store->List("nothing")->empty());
}

TEST_F(StoreTest, AQuoteInAKeyIsAKey) {
  auto store = OpenForWriting();
  const std::string key = "x'; DROP TABLE fact; --";
  ASSERT_TRUE(store->Put("k", key, "v").ok());
  EXPECT_EQ(Value(*store, "k", key), "v");
}

TEST_F(StoreTest, MakesTheFolderForItsOwnerOnly) {
  const std::string folder = absl::StrCat(folder_, "/deep/er");
  ASSERT_TRUE(Store::Open(folder, Store::Mode::kReadWrite).ok());
  struct stat made{};
  ASSERT_EQ(::stat(folder.c_str(), &made), 0);
  EXPECT_EQ(made.st_mode & 0777, 0700u);
}

TEST_F(StoreTest, PutOfTheSameValueWritesNothing) {
  auto store = OpenForWriting();
  ASSERT_TRUE(store->Put("k", "a", "v").ok());
  const auto size = std::filesystem::file_size(file_ + "-wal");
  ASSERT_TRUE(store->Put("k", "a", "v").ok());
  EXPECT_EQ(std::filesystem::file_size(file_ + "-wal"), size);
  ASSERT_TRUE(store->Put("k", "a", "w").ok());
  EXPECT_GT(std::filesystem::file_size(file_ + "-wal"), size);
}

TEST_F(StoreTest, OpeningACurrentFileWritesNothing) {
  ASSERT_TRUE(OpenForWriting()->Put("k", "a", "v").ok());
  const std::string before = Content();
  auto store = OpenForWriting();
  EXPECT_EQ(Value(*store, "k", "a"), "v");
  EXPECT_EQ(std::filesystem::file_size(file_ + "-wal"), 0u);
  EXPECT_EQ(Content(), before);
}

TEST_F(StoreTest, RefusesAHugeValue) {
  auto store = OpenForWriting();
  const Status status = store->Put("k", "a", std::string((1 << 20) + 1, 'x'));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_EQ(Value(*store, "k", "a"), std::nullopt);
}

TEST_F(StoreTest, SetsGarbageAsideAndBeginsAnew) {
  Write(
      "this is no database, and it is longer than a header of one hundred bytes, so SQLite reads "
      "it and says so .........");
  const std::string garbage = Content();
  auto store = OpenForWriting();
  ASSERT_TRUE(set_aside_.has_value());
  EXPECT_TRUE(absl::StartsWith(*set_aside_, file_ + ".corrupt-2")) << *set_aside_;
  EXPECT_TRUE(absl::EndsWith(*set_aside_, "Z")) << *set_aside_;
  EXPECT_EQ(*ReadFile(*set_aside_, 1 << 20), garbage);
  ASSERT_TRUE(store->Put("k", "a", "v").ok());
  EXPECT_EQ(Value(*store, "k", "a"), "v");
}

TEST_F(StoreTest, SetsATruncatedFileAside) {
  {
    auto store = OpenForWriting();
    for (int i = 0; i < 200; ++i) {
      ASSERT_TRUE(store->Put("k", absl::StrCat(i), std::string(200, 'v')).ok());
    }
  }
  std::filesystem::resize_file(file_, std::filesystem::file_size(file_) / 2);
  auto store = OpenForWriting();
  EXPECT_TRUE(set_aside_.has_value());
  EXPECT_TRUE(store->List("k")->empty());
}

TEST_F(StoreTest, SetsADamagedPageAside) {
  {
    auto store = OpenForWriting();
    for (int i = 0; i < 200; ++i) {
      ASSERT_TRUE(store->Put("k", absl::StrCat(i), std::string(200, 'v')).ok());
    }
  }
  std::string content = Content();
  content.replace(4096, 64, std::string(64, '\xa5'));  // the head of the table's first page
  Write(content);
  OpenForWriting();
  EXPECT_TRUE(set_aside_.has_value());
}

TEST_F(StoreTest, TakesAnEmptyFileForANewOne) {
  Write("");
  ASSERT_TRUE(OpenForWriting()->Put("k", "a", "v").ok());
  EXPECT_EQ(set_aside_, std::nullopt);
}

TEST_F(StoreTest, AnEmptiedFileBesideItsLogIsALoss) {
  auto writer = OpenForWriting();
  ASSERT_TRUE(writer->Put("k", "a", "v").ok());
  const std::string wal = *ReadFile(file_ + "-wal", 1 << 20);
  writer.reset();
  Write("");
  std::ofstream(file_ + "-wal", std::ios::binary) << wal;
  auto store = OpenForWriting();
  ASSERT_TRUE(set_aside_.has_value());
  EXPECT_EQ(*ReadFile(*set_aside_ + "-wal", 1 << 20), wal);
  EXPECT_EQ(Value(*store, "k", "a"), std::nullopt);
}

TEST_F(StoreTest, SetsAnotherProgramsDatabaseAside) {
  Sql("CREATE TABLE recipes (name TEXT); INSERT INTO recipes VALUES ('soup')");
  auto store = OpenForWriting();
  EXPECT_TRUE(set_aside_.has_value());
  EXPECT_EQ(Value(*store, "k", "a"), std::nullopt);
}

TEST_F(StoreTest, TwoInOneSecondDoNotOverwriteEachOther) {
  for (int i = 0; i < 3; ++i) {
    Write(absl::StrCat("garbage ", i, std::string(200, '.')));
    OpenForWriting();
  }
  int kept = 0;
  for (const std::string& name : Names()) kept += absl::StrContains(name, ".corrupt-") ? 1 : 0;
  EXPECT_EQ(kept, 3);
}

TEST_F(StoreTest, RefusesANewerSchemaAndLeavesItAlone) {
  ASSERT_TRUE(OpenForWriting()->Put("k", "a", "v").ok());
  Sql("PRAGMA user_version = 99");
  const std::string before = Content();
  for (const auto mode : {Store::Mode::kReadWrite, Store::Mode::kReadOnly}) {
    const auto opened = Store::Open(folder_, mode);
    ASSERT_EQ(opened.status().code(), absl::StatusCode::kFailedPrecondition) << opened.status();
    EXPECT_TRUE(absl::StrContains(opened.status().message(), "version 99")) << opened.status();
    EXPECT_TRUE(absl::StrContains(opened.status().message(), file_)) << opened.status();
  }
  EXPECT_EQ(Content(), before);
}

TEST_F(StoreTest, ReadOnlyNeedsAFile) {
  const auto missing = Store::Open(folder_, Store::Mode::kReadOnly);
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound) << missing.status();
  Write("");
  const auto empty = Store::Open(folder_, Store::Mode::kReadOnly);
  EXPECT_EQ(empty.status().code(), absl::StatusCode::kNotFound) << empty.status();
  EXPECT_EQ(Names(), std::vector<std::string>{"switchyard.db"}) << "nothing made";
}

TEST_F(StoreTest, ReadOnlyLeavesACorruptFileInItsPlace) {
  Write(std::string(4096, 'x'));
  const auto opened = Store::Open(folder_, Store::Mode::kReadOnly);
  EXPECT_EQ(opened.status().code(), absl::StatusCode::kDataLoss) << opened.status();
  EXPECT_EQ(Content(), std::string(4096, 'x'));
}

TEST_F(StoreTest, ReadersSeeWhatARunningWriterCommitted) {
  auto writer = OpenForWriting();
  ASSERT_TRUE(writer->Put("k", "a", "1").ok());
  auto reader = Store::Open(folder_, Store::Mode::kReadOnly);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ(Value(*reader->store, "k", "a"), "1");
  ASSERT_TRUE(writer->Put("k", "a", "2").ok());
  EXPECT_EQ(Value(*reader->store, "k", "a"), "2");
  EXPECT_FALSE(reader->store->Put("k", "a", "3").ok());
  EXPECT_EQ(Value(*writer, "k", "a"), "2");
}

TEST_F(StoreTest, ReadersAndAWriterAtOnce) {
  constexpr int kWrites = 200;
  auto writer = OpenForWriting();
  ASSERT_TRUE(writer->Put("k", "n", "0").ok());
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([this] {
      auto reader = Store::Open(folder_, Store::Mode::kReadOnly);
      ASSERT_TRUE(reader.ok()) << reader.status();
      int last = 0;
      while (last < kWrites) {
        const auto value = reader->store->Get("k", "n");
        ASSERT_TRUE(value.ok()) << value.status();
        const int now = std::stoi(value->value());
        ASSERT_GE(now, last);
        last = now;
      }
    });
  }
  for (int i = 1; i <= kWrites; ++i) ASSERT_TRUE(writer->Put("k", "n", absl::StrCat(i)).ok());
  for (std::thread& reader : readers) reader.join();
}

// Everything a child process may do that must not have this process's rights or must die.
int RunInChild(const std::function<int()>& body) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(body());
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST_F(StoreTest, CommittedFactsOutliveAKilledWriter) {
  int said[2];
  ASSERT_EQ(::pipe(said), 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    auto opened = Store::Open(folder_, Store::Mode::kReadWrite);
    for (int i = 1;; ++i) {
      if (!opened->store->Put("k", absl::StrCat(i), std::string(500, 'v')).ok()) ::_exit(1);
      if (::write(said[1], &i, sizeof(i)) != sizeof(i)) ::_exit(2);
    }
  }
  ::close(said[1]);
  int committed = 0;
  while (committed < 150) {  // several checkpoints
    ASSERT_EQ(::read(said[0], &committed, sizeof(committed)), ssize_t{sizeof(committed)});
  }
  ::kill(pid, SIGKILL);
  int status = 0;
  ::waitpid(pid, &status, 0);
  while (::read(said[0], &committed, sizeof(committed)) == sizeof(committed)) {
  }
  ::close(said[0]);
  ASSERT_TRUE(WIFSIGNALED(status));

  auto store = OpenForWriting();
  EXPECT_EQ(set_aside_, std::nullopt);
  const auto facts = store->List("k");
  ASSERT_TRUE(facts.ok()) << facts.status();
  for (int i = 1; i <= committed; ++i) EXPECT_TRUE(facts->contains(absl::StrCat(i))) << i;
  EXPECT_LE(static_cast<int>(facts->size()), committed + 1);
}

TEST_F(StoreTest, ReadsInAFolderThatCannotBeWritten) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to give its rights up; run as root";
  ASSERT_TRUE(OpenForWriting()->Put("k", "a", "v").ok());
  ASSERT_EQ(::chmod(folder_.c_str(), 0555), 0);
  const auto read_and_write = [this] {
    if (::setuid(65534) != 0) return 1;
    auto reader = Store::Open(folder_, Store::Mode::kReadOnly);
    if (!reader.ok()) return 2;
    const auto value = reader->store->Get("k", "a");
    if (!value.ok() || *value != "v") return 3;
    const auto writer = Store::Open(folder_, Store::Mode::kReadWrite);
    if (writer.ok()) return 4;
    return absl::StrContains(writer.status().message(), folder_) ? 0 : 5;
  };
  EXPECT_EQ(RunInChild(read_and_write), 0) << "without an agent";
  auto agent = OpenForWriting();
  ASSERT_TRUE(agent->Put("k", "b", "w").ok());
  EXPECT_EQ(RunInChild(read_and_write), 0) << "beside an agent";
  EXPECT_EQ(Value(*agent, "k", "a"), "v") << "and not set aside";
}

}  // namespace
}  // namespace switchyard::store
