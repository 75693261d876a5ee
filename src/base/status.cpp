// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"

#include "absl/strings/str_cat.h"

namespace switchyard {

Status Annotate(const Status& status, absl::string_view context) {
  if (status.ok()) return status;
  Status annotated(status.code(), absl::StrCat(context, ": ", status.message()));
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    annotated.SetPayload(url, payload);
  });
  return annotated;
}

Status ErrnoError(int error, absl::string_view what) { return absl::ErrnoToStatus(error, what); }

}  // namespace switchyard
