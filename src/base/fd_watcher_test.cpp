// SPDX-License-Identifier: Apache-2.0
#include "base/fd_watcher.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"

namespace switchyard {
namespace {

struct Pipe {
  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0) {
      read = UniqueFd(ends[0]);
      write = UniqueFd(ends[1]);
    }
  }
  UniqueFd read;
  UniqueFd write;
};

// What a callback has read so far.
class Collector {
 public:
  void Drain(int fd) {
    char buffer[64];
    for (ssize_t got; (got = ::read(fd, buffer, sizeof(buffer))) > 0;) {
      absl::MutexLock lock(&mutex_);
      text_.append(buffer, static_cast<size_t>(got));
    }
  }
  void WaitFor(const std::string& text) {
    absl::MutexLock lock(&mutex_);
    const auto reached = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return text_ == text; };
    mutex_.Await(absl::Condition(&reached));
  }

 private:
  absl::Mutex mutex_;
  std::string text_ ABSL_GUARDED_BY(mutex_);
};

TEST(FdWatcherTest, CallsForWhatWasThereBeforeAndForWhatComes) {
  Pipe pipe;
  Collector collector;
  ASSERT_EQ(::write(pipe.write.get(), "a", 1), 1);
  FdWatcher watcher("test", pipe.read.get(), [&] { collector.Drain(pipe.read.get()); });
  collector.WaitFor("a");
  ASSERT_EQ(::write(pipe.write.get(), "b", 1), 1);
  collector.WaitFor("ab");
}

TEST(FdWatcherTest, EndsWithoutAnyEvent) {
  Pipe pipe;
  {
    const FdWatcher watcher("test", pipe.read.get(), [] { FAIL() << "nothing came"; });
  }
}

TEST(FdWatcherTest, ReadsWhatWasLeftBehindAClosedEndAndIsQuietThen) {
  Pipe pipe;
  Collector collector;
  std::atomic<int> calls = 0;
  ASSERT_EQ(::write(pipe.write.get(), "last", 4), 4);
  pipe.write.reset();
  {
    FdWatcher watcher("test", pipe.read.get(), [&] {
      ++calls;
      collector.Drain(pipe.read.get());
    });
    collector.WaitFor("last");
  }
  EXPECT_EQ(calls, 1);
}

// A socket may have an error to tell and nothing to read: a netlink socket that lost messages, or,
// easier to make, a datagram that nobody wanted.
TEST(FdWatcherTest, AnErrorIsForTheReaderAndDoesNotEndTheWatch) {
  const auto bound = [] {
    UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    return fd;
  };
  const UniqueFd ours = bound();
  UniqueFd theirs = bound();
  sockaddr_in address{};
  socklen_t length = sizeof(address);
  ASSERT_EQ(::getsockname(theirs.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
  ASSERT_EQ(::connect(ours.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
  theirs.reset();

  std::atomic<int> error = 0;
  absl::Notification told;
  FdWatcher watcher("test", ours.get(), [&] {
    char byte;
    if (::recv(ours.get(), &byte, 1, 0) < 0 && errno != EAGAIN && error == 0) {
      error = errno;
      told.Notify();
    }
  });
  ASSERT_EQ(::send(ours.get(), "x", 1, 0), 1);
  told.WaitForNotification();
  EXPECT_EQ(error, ECONNREFUSED);
}

}  // namespace
}  // namespace switchyard
