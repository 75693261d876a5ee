// SPDX-License-Identifier: Apache-2.0
#include "apps/testing/run_program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace switchyard::apps::testing {
namespace {

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

Ran RunSwitchyard(const std::vector<std::string>& arguments,
                  const std::map<std::string, std::string>& environment) {
  const TemporaryFolder folder;
  const std::string program = SWITCHYARD_BIN_DIR "/switchyard";
  std::vector<std::string> words = {program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<std::string> variables;
  variables.reserve(environment.size() + 4);
  for (const auto& [name, value] : environment) variables.push_back(name + "=" + value);
  for (const char* kept : {"PATH", "ASAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS"}) {
    if (const char* value = std::getenv(kept)) variables.push_back(std::string(kept) + "=" + value);
  }

  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, 1, folder.Path("out").c_str(), O_CREAT | O_WRONLY,
                                     0600);
  ::posix_spawn_file_actions_addopen(&actions, 2, folder.Path("err").c_str(), O_CREAT | O_WRONLY,
                                     0600);
  pid_t pid = -1;
  const int failed = ::posix_spawn(&pid, program.c_str(), &actions, nullptr, Pointers(words).data(),
                                   Pointers(variables).data());
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return {};

  Ran ran;
  int status = 0;
  ::waitpid(pid, &status, 0);
  ran.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  ran.out = folder.Read("out");
  ran.err = folder.Read("err");
  return ran;
}

TemporaryFolder::TemporaryFolder() {
  std::string path = "/tmp/swy-XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) std::abort();
  path_ = path;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TemporaryFolder::Write(const std::string& name, const std::string& content) const {
  const std::filesystem::path path = Path(name);
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << content;
  return path.string();
}

std::string TemporaryFolder::Read(const std::string& name) const {
  std::ifstream file(Path(name), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace switchyard::apps::testing
