// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where the host's sys/, dev/ and proc/ are seen from this process: "/" on a node, a mount in a
// pod, a folder in tests. It prefixes exactly those three, reads and sysfs writes; no path that is
// handed to kubelet or written into a CDI file carries it. A plain value; any thread.

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace switchyard {

class HostRoot {
 public:
  explicit HostRoot(std::string prefix = "/") : prefix_(std::move(prefix)) {
    if (prefix_.empty() || prefix_.back() != '/') prefix_.push_back('/');
  }

  // relative: "sys/bus/pci/devices", without a leading slash.
  [[nodiscard]] std::string Path(absl::string_view relative) const {
    return absl::StrCat(prefix_, relative);
  }

  // The prefix itself, ending in '/'.
  [[nodiscard]] const std::string& prefix() const { return prefix_; }

 private:
  std::string prefix_;
};

}  // namespace switchyard
