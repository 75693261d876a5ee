// SPDX-License-Identifier: Apache-2.0
#pragma once

// The real libnvfm. Called in the helper process only: the library may crash or hang.

#include <memory>
#include <string>

#include "base/status.h"
#include "fabric/nvfm.h"

namespace switchyard::fabric {

// `path` empty: libnvfm.so.1, then libnvfm.so, where the loader searches. kNotFound if it can't be
// opened, kUnimplemented if a function that every use needs is missing (named).
[[nodiscard]] Result<std::unique_ptr<NvfmApi>> LoadNvfm(const std::string& path);

}  // namespace switchyard::fabric
