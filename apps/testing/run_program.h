// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests: runs the built switchyard as a user would, with nothing of this process's environment
// but PATH, and a folder of its own.

#include <map>
#include <string>
#include <vector>

namespace switchyard::apps::testing {

struct Ran {
  int exit_code = -1;  // 128 + signal if it was killed
  std::string out;
  std::string err;
};

[[nodiscard]] Ran RunSwitchyard(const std::vector<std::string>& arguments,
                                const std::map<std::string, std::string>& environment = {});

// A folder under /tmp with a short name (unix sockets), removed by the destructor.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] std::string Path(const std::string& name) const { return path_ + "/" + name; }
  // Makes folders on the way. Returns the path.
  std::string Write(const std::string& name, const std::string& content) const;
  [[nodiscard]] std::string Read(const std::string& name) const;

 private:
  std::string path_;
};

}  // namespace switchyard::apps::testing
