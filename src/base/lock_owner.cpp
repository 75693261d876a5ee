// SPDX-License-Identifier: Apache-2.0
#include "base/lock_owner.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/files.h"

namespace switchyard {
namespace {

constexpr size_t kMaxValue = 1024;
constexpr size_t kMaxText = 16 * 1024;

struct Line {
  absl::string_view key;
  std::string LockOwner::* value;
};
constexpr std::array<Line, 4> kLines = {{{"command ", &LockOwner::command},
                                         {"host ", &LockOwner::host},
                                         {"cgroup ", &LockOwner::cgroup},
                                         {"since ", &LockOwner::since}}};

// One line, bounded, whatever bytes it was.
std::string Plain(absl::string_view text) {
  std::string line(absl::StripAsciiWhitespace(text.substr(0, kMaxValue)));
  std::replace_if(
      line.begin(), line.end(),
      [](char c) { return absl::ascii_iscntrl(static_cast<unsigned char>(c)); }, ' ');
  return line;
}

// cgroup v2: the line "0::PATH". v1: any controller's, all of them are the container's.
std::string Cgroup() {
  const std::string text = ReadFile("/proc/self/cgroup", kMaxText).value_or("");
  std::string path;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<absl::string_view> fields = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() == 3 && fields[2].size() > path.size()) path = std::string(fields[2]);
  }
  return path;
}

}  // namespace

LockOwner ThisProcess() {
  LockOwner owner;
  owner.pid = ::getpid();
  std::string command = ReadFile("/proc/self/cmdline", kMaxText).value_or("");
  std::replace(command.begin(), command.end(), '\0', ' ');
  owner.command = Plain(command);
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) == 0) owner.host = Plain(host.data());
  owner.cgroup = Plain(Cgroup());
  owner.since = absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::Now(), absl::UTCTimeZone());
  return owner;
}

std::string LockOwnerText(const LockOwner& owner) {
  std::string text = absl::StrCat(owner.pid, "\n");
  for (const Line& line : kLines) absl::StrAppend(&text, line.key, owner.*line.value, "\n");
  return text;
}

Result<LockOwner> ReadLockOwner(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxText));
  LockOwner owner;
  bool first = true;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (std::exchange(first, false)) {
      if (!absl::SimpleAtoi(absl::StripAsciiWhitespace(line), &owner.pid) || owner.pid <= 0) {
        return absl::DataLossError(absl::StrCat(path, ": its first line is no PID"));
      }
      continue;
    }
    for (const Line& known : kLines) {
      if (absl::ConsumePrefix(&line, known.key)) owner.*known.value = Plain(line);
    }
  }
  return owner;
}

std::string LockOwner::Describe() const {
  std::string text = absl::StrCat("process ", pid);
  if (!command.empty()) absl::StrAppend(&text, " (", command, ")");
  if (!host.empty()) absl::StrAppend(&text, " on host ", host);
  if (!cgroup.empty() && cgroup != "/") absl::StrAppend(&text, ", cgroup ", cgroup);
  if (!since.empty()) absl::StrAppend(&text, ", since ", since);
  return text;
}

}  // namespace switchyard
