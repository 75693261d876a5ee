// SPDX-License-Identifier: Apache-2.0
#pragma once

// A simulated Fabric Manager in shared NVSwitch mode: serves one board's partition table to the
// simulator's libnvfm.so.1 (sim/fm/nvfm, sim/fm/wire.h) over TCP and unix sockets, and misbehaves
// on demand. One thread of its own while it is up; every function from any thread. Latency is real
// time, since the client is another process with a deadline of its own.

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/status.h"
#include "sim/board/board.h"
#include "sim/fm/server.h"

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
  enum class Hang { kNone, kConnect, kList };  // that call is never answered
  Hang hang = Hang::kNone;
  absl::Duration latency;      // before every answer
  bool crash_library = false;  // the list call kills the process that called
  int connect_code = 0;        // what fmConnect and the list call return instead of success
  int list_code = 0;
  bool connect_v1_only = false;  // an old FM: connect parameters of version 2 are -6
  BrokenTable table = BrokenTable::kNone;
  // Modules that are out of order. Up to A100, their partitions disappear from the list (ids and
  // maxNumPartitions stay); from H100 on, the list stays whole.
  std::set<int> failed_modules;
};

class FabricManager {
 public:
  struct Options {
    std::string tcp;                // "127.0.0.1:6666"; port 0 = choose one; empty = none
    std::string unix_socket;        // path; empty = none
    std::string internal_socket;    // where list calls are answered with -4; empty = none
    bool zero_pci_bus_ids = false;  // H100 and later: "00000000:00:00.0" instead of ""
  };

  FabricManager(Board board, Options options);
  ~FabricManager();
  FabricManager(const FabricManager&) = delete;
  FabricManager& operator=(const FabricManager&) = delete;

  // Up: listens on every endpoint, replacing a socket file that is left over. Does nothing if up.
  [[nodiscard]] Status Start();
  // Down: connections break, socket files are removed. The active set and a chosen port stay.
  void Stop();
  [[nodiscard]] bool running() const;

  // "127.0.0.1:40123" once started, the port being the real one; empty without TCP.
  [[nodiscard]] std::string tcp_address() const;

  // What an operator activated: exactly these. kInvalidArgument for an id that the board lacks, or
  // two that share a GPU.
  [[nodiscard]] Status SetActive(const std::set<int>& ids);
  [[nodiscard]] std::set<int> active() const;

  void SetFaults(FabricManagerFaults faults);
  [[nodiscard]] FabricManagerFaults faults() const;

  // Waits until some call is being left unanswered (Hang); false after `timeout`.
  [[nodiscard]] bool AwaitHeldCall(absl::Duration timeout) const;

 private:
  Result<std::vector<WireServer::Listener>> Listen() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The server's handler.
  WireServer::Answer AnswerTo(const WireRequest& request, bool internal);

  const Board board_;
  const Options options_;
  mutable absl::Mutex mutex_;
  std::string tcp_ ABSL_GUARDED_BY(mutex_);  // with the chosen port after the first Start
  std::set<int> active_ ABSL_GUARDED_BY(mutex_);
  FabricManagerFaults faults_ ABSL_GUARDED_BY(mutex_);
  int held_calls_ ABSL_GUARDED_BY(mutex_) = 0;
  std::unique_ptr<WireServer> server_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace switchyard::sim
