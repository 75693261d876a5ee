// SPDX-License-Identifier: Apache-2.0
#include "base/child_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/match.h"

namespace switchyard {
namespace {

struct Pipe {
  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) == 0) {
      read = UniqueFd(ends[0]);
      write = UniqueFd(ends[1]);
    }
  }
  // Until the last writer has closed it.
  std::string ReadAll() {
    write.reset();
    std::string text;
    char buffer[256];
    for (ssize_t got; (got = ::read(read.get(), buffer, sizeof(buffer))) > 0;) {
      text.append(buffer, static_cast<size_t>(got));
    }
    return text;
  }
  UniqueFd read;
  UniqueFd write;
};

bool Exists(pid_t pid) { return ::kill(pid, 0) == 0; }

TEST(ChildProcessTest, AFailedExecIsItsErrno) {
  const auto missing = ChildProcess::Start({{"/no/such/program"}, std::nullopt});
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(absl::StrContains(missing.status().message(), "/no/such/program"))
      << missing.status();
  const auto no_program = ChildProcess::Start({{"/etc/passwd"}, std::nullopt});
  EXPECT_EQ(no_program.status().code(), absl::StatusCode::kPermissionDenied) << no_program.status();
}

TEST(ChildProcessTest, HandsOverDescriptor3) {
  Pipe pipe;
  auto child = ChildProcess::Start({{"sh", "-c", "printf 'hello' >&3"}, pipe.write.get()});
  ASSERT_TRUE(child.ok()) << child.status();
  EXPECT_EQ(pipe.ReadAll(), "hello");
}

TEST(ChildProcessTest, HandsOverDescriptor3ThatIs3Here) {
  Pipe pipe;
  const int spare = ::fcntl(3, F_DUPFD_CLOEXEC, 100);  // whatever the test runner has there
  ASSERT_EQ(::dup3(pipe.write.get(), 3, O_CLOEXEC), 3);
  auto child = ChildProcess::Start({{"sh", "-c", "printf 'hello' >&3"}, 3});
  if (spare >= 0) {
    ::dup3(spare, 3, O_CLOEXEC);
    ::close(spare);
  } else {
    ::close(3);
  }
  ASSERT_TRUE(child.ok()) << child.status();
  EXPECT_EQ(pipe.ReadAll(), "hello");
}

TEST(ChildProcessTest, InheritsNothingElse) {
  Pipe pipe;
  const UniqueFd careless(::fcntl(pipe.read.get(), F_DUPFD, 700));  // no FD_CLOEXEC
  auto child = ChildProcess::Start(
      {{"sh", "-c", "for f in /proc/$$/fd/*; do echo ${f##*/}; done >&3"}, pipe.write.get()});
  ASSERT_TRUE(child.ok()) << child.status();
  const std::string open = pipe.ReadAll();
  EXPECT_FALSE(absl::StrContains(open, "700\n")) << open;
  EXPECT_TRUE(absl::StrContains(open, "3\n")) << open;
}

TEST(ChildProcessTest, KillReapsAndSaysHowItEnded) {
  auto child = ChildProcess::Start({{"sleep", "1000"}, std::nullopt});
  ASSERT_TRUE(child.ok()) << child.status();
  const pid_t pid = child->pid();
  EXPECT_TRUE(Exists(pid));
  EXPECT_EQ(child->Kill(), "signal 9 (Killed)");
  EXPECT_FALSE(Exists(pid)) << "not even as a zombie";
  EXPECT_EQ(child->Kill(), "not running");
}

TEST(ChildProcessTest, KillOfOneThatEndedGivesItsExitCode) {
  Pipe pipe;
  auto child = ChildProcess::Start({{"sh", "-c", "exit 3"}, pipe.write.get()});
  ASSERT_TRUE(child.ok()) << child.status();
  EXPECT_EQ(pipe.ReadAll(), "") << "closed by its end";
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child->pid()), &info, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(child->Kill(), "exit 3");
}

TEST(ChildProcessTest, TheDestructorKills) {
  pid_t pid;
  {
    auto child = ChildProcess::Start({{"sleep", "1000"}, std::nullopt});
    ASSERT_TRUE(child.ok()) << child.status();
    pid = child->pid();
  }
  EXPECT_FALSE(Exists(pid));
}

TEST(ChildProcessTest, AMoveMovesTheDuty) {
  auto first = ChildProcess::Start({{"sleep", "1000"}, std::nullopt});
  auto second = ChildProcess::Start({{"sleep", "1000"}, std::nullopt});
  ASSERT_TRUE(first.ok() && second.ok());
  const pid_t replaced = second->pid();
  const pid_t kept = first->pid();
  *second = *std::move(first);
  EXPECT_FALSE(Exists(replaced));
  EXPECT_TRUE(Exists(kept));
  EXPECT_EQ(second->pid(), kept);
}

}  // namespace
}  // namespace switchyard
