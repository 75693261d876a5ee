// SPDX-License-Identifier: Apache-2.0
#include "sim/process/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace switchyard::sim {
namespace {

constexpr std::size_t kMaxLines = 100'000;
constexpr std::size_t kMaxOutput = 64 * 1024;

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

Result<std::unique_ptr<Process>> Process::Start(std::vector<std::string> arguments,
                                                std::vector<std::string> environment) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return ErrnoError(errno, "pipe");
  UniqueFd read_end(ends[0]);
  const UniqueFd write_end(ends[1]);

  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, write_end.get(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, write_end.get(), STDERR_FILENO);
  for (char** variable = environ; *variable != nullptr; ++variable) {
    environment.emplace_back(*variable);  // what the caller gave comes first and wins
  }
  pid_t pid = -1;
  const int error = ::posix_spawnp(&pid, arguments[0].c_str(), &actions, nullptr,
                                   Pointers(arguments).data(), Pointers(environment).data());
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return ErrnoError(error, absl::StrCat("starting ", arguments[0]));
  return std::unique_ptr<Process>(new Process(pid, std::move(read_end)));
}

Process::Process(pid_t pid, UniqueFd output)
    : pid_(pid), output_(std::move(output)), reader_([this] { ReadLines(); }) {}

Process::~Process() {
  Kill();
  reader_.join();
}

void Process::ReadLines() {
  std::string partial;
  char buffer[4096];
  for (ssize_t got; (got = ::read(output_.get(), buffer, sizeof(buffer))) > 0 || errno == EINTR;) {
    if (got < 0) continue;
    if (got == 0) break;
    absl::MutexLock lock(&mutex_);
    for (const char c : absl::string_view(buffer, static_cast<std::size_t>(got))) {
      if (c != '\n') {
        partial.push_back(c);
      } else if (lines_.size() < kMaxLines) {
        lines_.push_back(std::exchange(partial, ""));
      }
    }
  }
  absl::MutexLock lock(&mutex_);
  if (!partial.empty()) lines_.push_back(partial);
  ended_ = true;
}

std::optional<std::string> Process::WaitForLine(absl::string_view text, absl::Duration timeout) {
  std::optional<std::string> found;
  absl::MutexLock lock(&mutex_);
  std::size_t next = mark_;
  const auto seen = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    for (; next < lines_.size() && !found; ++next) {
      if (absl::StrContains(lines_[next], text)) found = lines_[next];
    }
    return found.has_value() || ended_;
  };
  mutex_.AwaitWithTimeout(absl::Condition(&seen), timeout);
  return found;
}

void Process::Mark() {
  absl::MutexLock lock(&mutex_);
  mark_ = lines_.size();
}

std::string Process::Output() const {
  absl::MutexLock lock(&mutex_);
  std::string text = absl::StrJoin(lines_, "\n");
  return text.size() <= kMaxOutput ? text : text.substr(text.size() - kMaxOutput);
}

std::optional<int> Process::Wait(absl::Duration timeout) {
  if (exit_code_) return exit_code_;
  const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  pollfd ended{process.get(), POLLIN, 0};
  if (::poll(&ended, 1, static_cast<int>(absl::ToInt64Milliseconds(timeout))) <= 0) {
    return std::nullopt;
  }
  int status = 0;
  if (::waitpid(pid_, &status, 0) != pid_) return std::nullopt;
  exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return exit_code_;
}

std::optional<int> Process::Stop(absl::Duration timeout) {
  if (exit_code_) return exit_code_;
  ::kill(pid_, SIGTERM);
  const std::optional<int> code = Wait(timeout);
  if (!code) Kill();
  return code;
}

void Process::Kill() {
  if (exit_code_) return;
  ::kill(pid_, SIGKILL);
  (void)Wait(absl::Minutes(1));
}

}  // namespace switchyard::sim
