// SPDX-License-Identifier: Apache-2.0
#pragma once

// Whether somebody listens where Fabric Manager should: for the warning that the fabric is off.
// Connects and closes, says nothing. Blocks 200 ms at most.

#include "fabric/fabric_reader.h"

namespace switchyard::agent {

[[nodiscard]] bool Listens(const fabric::FabricAddress& address);

}  // namespace switchyard::agent
