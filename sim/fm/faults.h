// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the simulated Fabric Manager does wrong. A plain value; any thread.

#include <map>
#include <set>

#include "absl/time/time.h"
#include "sim/fm/abi.h"
#include "sim/fm/wire.h"

namespace switchyard::sim {

// Tables that break FM's own rules: each is the board's table with one thing wrong.
enum class BrokenTable {
  kNone,
  kTooManyPartitions,  // numPartitions 65
  kTooManyGpus,        // the first partition has numGpus 17
  kRepeatedId,         // the second partition has the first one's id
  kEmptyPartition,     // the last partition has no GPU
  kRepeatedGpu,        // the first partition names its first GPU twice
};

struct FabricManagerFaults {
  // That call is never answered, and does nothing.
  enum class Hang { kNone, kConnect, kList, kActivate, kDeactivate, kSetActivated };
  Hang hang = Hang::kNone;
  absl::Duration latency;  // before every answer; a change is done at once
  // How long a change takes until it is done and answered; done also if the caller has gone.
  absl::Duration change_time;
  bool crash_library = false;  // list and changes kill the process that called, once done
  int connect_code = 0;        // what fmConnect and the list call return instead of success
  int list_code = 0;
  std::map<WireCall, fmReturn> change_codes = {};  // what changes return instead of being done
  bool no_effect = false;                          // changes are answered with success and not done
  bool late_changes = false;  // changes are left unanswered, and done once the caller has gone
  fmReturn waiting_code = FM_NOT_CONFIGURED;  // of calls while it waits for the active list
  bool connect_v1_only = false;               // an old FM: connect parameters of version 2 are -6
  BrokenTable table = BrokenTable::kNone;
  // Modules that are out of order. Up to A100, their partitions disappear from the list (ids and
  // maxNumPartitions stay) and can't be activated; from H100 on, the list stays whole.
  std::set<int> failed_modules = {};
};

}  // namespace switchyard::sim
