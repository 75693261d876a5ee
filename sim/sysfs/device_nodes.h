// SPDX-License-Identifier: Apache-2.0
#pragma once

// The files below <root>/dev. As root they are device nodes that open without the hardware and
// differ from each other: first a few that open as quickly as a group of VFIO's (memory of the
// consoles that are there, character 7:0 and so on; cpuid, 203:0), then virtual consoles (character
// 4:20 to 4:63), which take ten times as long, then loop devices (block 7:0 to 7:63). Elsewhere, or
// where no kind opens, they are plain files. One thread at a time.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace switchyard::sim {

class DeviceNodes {
 public:
  // Finds out which kinds open, with a node in `root` that is removed again.
  explicit DeviceNodes(std::string root);

  // False: plain files.
  [[nodiscard]] bool real() const { return !kinds_.empty(); }

  // Makes <root>/<path> ("dev/vfio/12"), folders included; returns the content of sysfs's "dev"
  // file, "4:20\n", or what a plain file has: "0:0\n". kResourceExhausted when all numbers are
  // taken.
  [[nodiscard]] Result<std::string> Make(const std::string& path, unsigned mode);
  [[nodiscard]] Status Remove(const std::string& path);

 private:
  struct Kind {
    unsigned type;  // S_IFCHR, S_IFBLK
    unsigned major;
    unsigned first_minor;
    unsigned last_minor;
  };
  using Number = std::pair<unsigned, unsigned>;  // major, minor

  [[nodiscard]] bool Opens(const Kind& kind) const;
  [[nodiscard]] Result<std::pair<Kind, Number>> FreeNumber() const;

  static const std::vector<Kind>& AllKinds();

  std::string root_;
  std::vector<Kind> kinds_;             // those that open here
  std::map<std::string, Number> used_;  // by path
};

}  // namespace switchyard::sim
