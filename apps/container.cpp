// SPDX-License-Identifier: Apache-2.0
#include "apps/container.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/files.h"

namespace switchyard::apps {
namespace {

constexpr size_t kMaxCgroup = 64 * 1024;

bool HasOpen(const std::string& process, const struct stat& file) {
  const std::string folder = absl::StrCat(process, "/fd");
  const std::vector<std::string> descriptors =
      ListFolder(folder).value_or(std::vector<std::string>());
  return std::any_of(descriptors.begin(), descriptors.end(), [&](const std::string& name) {
    struct stat found{};
    return ::stat(absl::StrCat(folder, "/", name).c_str(), &found) == 0 &&
           found.st_dev == file.st_dev && found.st_ino == file.st_ino;
  });
}

}  // namespace

Container::Container(std::string proc, std::string cgroup)
    : proc_(std::move(proc)), cgroup_(std::move(cgroup)) {}

Result<Container> Container::Own(std::string proc) {
  ASSIGN_OR_RETURN(std::string cgroup, ReadFile(absl::StrCat(proc, "/self/cgroup"), kMaxCgroup));
  return Container(std::move(proc), std::move(cgroup));
}

bool Container::Has(pid_t pid) const {
  if (pid <= 0) return false;
  const Result<std::string> cgroup = ReadFile(absl::StrCat(proc_, "/", pid, "/cgroup"), kMaxCgroup);
  return cgroup.ok() && *cgroup == cgroup_;
}

bool Container::HasNamed(const std::string& name, const std::string& open_file) const {
  struct stat file{};
  if (::stat(open_file.c_str(), &file) != 0) return false;
  const std::vector<std::string> entries = ListFolder(proc_).value_or(std::vector<std::string>());
  return std::any_of(entries.begin(), entries.end(), [&](const std::string& entry) {
    pid_t pid = 0;
    if (!absl::SimpleAtoi(entry, &pid)) return false;
    const std::string process = absl::StrCat(proc_, "/", entry);
    const Result<std::string> comm = ReadFile(process + "/comm", 64);
    return comm.ok() && *comm == name + "\n" && Has(pid) && HasOpen(process, file);
  });
}

}  // namespace switchyard::apps
