// SPDX-License-Identifier: Apache-2.0
#pragma once

// The seam to whoever owns the partitions, with the calls that change them: only `enforce` makes
// them. As in FabricReader: blocking up to a deadline that covers connect, call and re-read
// together, one thread at a time.

#include <optional>
#include <span>

#include "absl/time/time.h"
#include "base/status.h"
#include "fabric/fabric_reader.h"

namespace switchyard::fabric {

class FabricControl : public FabricReader {
 public:
  // At most `within`, and no longer than the back end's own limit: kDeadlineExceeded. A read in
  // flight, which nobody waits for as for these, is ended and returns kCancelled. Each is one
  // connection: the call, then the list read again, which is returned and decides: a
  // success that the list does not show is an error. Already as asked for is a success (Fabric
  // Manager's code for that differs by generation and is no fault). Codes beyond FabricReader's:
  //   kInvalidArgument    the partition is not in FM's table
  //   kAlreadyExists      a GPU of it is in another active partition (named, from the list)
  //   kUnknown            FM said success, and the list does not show it or could not be read
  // kUnimplemented also stands for a libnvfm that lacks the function. A fault of the fabric and a
  // code that nobody documents (kInternal) are errors even where the list shows the change.
  // After every error but kInvalidArgument, kAlreadyExists, kFailedPrecondition, kUnimplemented and
  // kNotFound the change may have happened or may still happen: read the list before deciding
  // anything else.
  [[nodiscard]] virtual Result<FabricList> Activate(int partition, absl::Duration within) = 0;
  [[nodiscard]] virtual Result<FabricList> Deactivate(int partition, absl::Duration within) = 0;
  // The answer to a warm restart: all partitions that were active, at most 64; none is a list too.
  // Never for a cold FM: what that does is undefined.
  [[nodiscard]] virtual Result<FabricList> SetActivated(std::span<const int> partitions) = 0;
};

// libnvfm's return code behind an error of this seam, never 0; none if the error is not FM's word
// (no library, a deadline, a crash, a success that the list does not show). Kept across the helper
// process. Which call it came from: fabric_answer.h.
[[nodiscard]] std::optional<int> FabricCodeOf(const Status& status);

}  // namespace switchyard::fabric
