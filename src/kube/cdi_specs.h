// SPDX-License-Identifier: Apache-2.0
#pragma once

// The offer as CDI files, for a contract that has them (Contract::WritesCdi): one file a resource,
// kind = resource name, device names = kubelet's device ids, because Kata's shim joins the two.
// Blocking; one caller. A resource that fails does not stop the others; the first error is
// returned.

#include <string>

#include "base/status.h"
#include "kube/catalogue.h"

namespace switchyard::kube {

// Also removes the files of retired names. An unchanged file is left alone.
[[nodiscard]] Status WriteCdiSpecs(const std::string& folder, const Offer& offer);

}  // namespace switchyard::kube
