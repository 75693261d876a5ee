// SPDX-License-Identifier: Apache-2.0
#pragma once

// A CDI specification file (Container Device Interface) of device nodes, as Kata's shim reads it.
// cdiVersion 0.5.0: the lowest that has deviceNodes.hostPath, since old runtimes refuse newer ones.

#include <string>
#include <vector>

#include "base/status.h"

namespace switchyard::cdi {

struct CdiDevice {
  std::string name;                // CDI device name: the kubelet device id
  std::vector<std::string> nodes;  // absolute paths, each once; never empty
};

struct CdiSpec {
  std::string kind;  // "vendor/class": nvidia.com/pgpu
  std::vector<CdiDevice> devices;
};

// Checks CDI's grammar of kind and names; kInvalidArgument names what breaks it.
[[nodiscard]] Status Validate(const CdiSpec& spec);

// YAML text of `spec`. Precondition: valid.
[[nodiscard]] std::string ToYaml(const CdiSpec& spec);

// Writes <folder>/<vendor>-<class>.yaml atomically and removes a left-over .json of the same stem
// (the two would conflict, and CDI drops every device of a conflict). No devices: removes both. The
// content is compared first; an equal file is left alone.
[[nodiscard]] Status WriteSpec(const std::string& folder, const CdiSpec& spec);

}  // namespace switchyard::cdi
