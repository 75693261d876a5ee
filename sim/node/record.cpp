// SPDX-License-Identifier: Apache-2.0
#include "sim/node/record.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/lock_owner.h"
#include "base/unique_fd.h"

namespace switchyard::sim {

using Json = nlohmann::json;

Status WriteRecord(const NodePaths& paths, const Record& record) {
  const Json json = {{"board", record.board},
                     {"driver", record.driver},
                     {"seed", record.seed},
                     {"iommufd", record.iommufd},
                     {"namespaces", record.namespaces},
                     {"madeFolders", record.made_folders}};
  return WriteFileAtomically(paths.record(), json.dump(2) + "\n");
}

Result<Record> ReadRecord(const NodePaths& paths) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(paths.record(), 64 << 10));
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return absl::DataLossError(absl::StrCat(paths.record(), ": not JSON"));
  try {
    Record record;
    record.board = json.at("board");
    record.driver = json.at("driver");
    record.seed = json.at("seed");
    record.iommufd = json.at("iommufd");
    record.namespaces = json.at("namespaces");
    record.made_folders = json.at("madeFolders").get<std::vector<std::string>>();
    return record;
  } catch (const Json::exception& e) {
    return absl::DataLossError(absl::StrCat(paths.record(), ": ", e.what()));
  }
}

std::optional<pid_t> RunningSimulator(const NodePaths& paths) {
  const UniqueFd fd(open(paths.pid().c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid() || flock(fd.get(), LOCK_SH | LOCK_NB) == 0) return std::nullopt;
  const Result<LockOwner> owner = ReadLockOwner(paths.pid());
  if (!owner.ok()) return std::nullopt;
  return owner->pid;
}

}  // namespace switchyard::sim
