// SPDX-License-Identifier: Apache-2.0
#pragma once

// A simulated Fabric Manager in shared NVSwitch mode: serves one board's partition table to the
// simulator's libnvfm.so.1 (sim/fm/nvfm, sim/fm/wire.h) over TCP and unix sockets, activates and
// deactivates, restarts warm and cold, and misbehaves on demand. One thread of its own while it is
// up, another while it waits for the list of active partitions; every function from any thread.
// Latency is real time, since the client is another process with a deadline of its own; the 60 s of
// a warm restart are the clock's.

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status.h"
#include "base/worker.h"
#include "sim/board/board.h"
#include "sim/fm/faults.h"
#include "sim/fm/partitions.h"
#include "sim/fm/server.h"

namespace switchyard::sim {

class FabricManager {
 public:
  struct Options {
    std::string tcp = {};              // "127.0.0.1:6666"; port 0 = choose one; empty = none
    std::string unix_socket = {};      // path; empty = none
    std::string internal_socket = {};  // where list calls are answered with -4; empty = none
    bool zero_pci_bus_ids = false;     // H100 and later: "00000000:00:00.0" instead of ""
    std::optional<ReturnCodes> return_codes = {};  // default: the board's generation
    Clock* clock = nullptr;                        // of the window; null = the machine's
  };
  // How long a warm FM waits for the list of active partitions before it exits.
  static constexpr absl::Duration kWindow = absl::Seconds(60);

  FabricManager(Board board, Options options);
  ~FabricManager();
  FabricManager(const FabricManager&) = delete;
  FabricManager& operator=(const FabricManager&) = delete;

  // Up: listens on every endpoint, replacing a socket file that is left over. Does nothing if up.
  // A warm FM whose list never came waits anew.
  [[nodiscard]] Status Start();
  // Out of reach: connections break, socket files are removed. The active set and a chosen port
  // stay, so Stop and Start are an outage, not a restart.
  void Stop();
  // Ends and starts anew, also from down. Calls that are held break.
  enum class Kind { kWarm, kCold };
  [[nodiscard]] Status Restart(Kind kind);
  [[nodiscard]] bool running() const;

  // "127.0.0.1:40123" once started, the port being the real one; empty without TCP.
  [[nodiscard]] std::string tcp_address() const;

  // What another client asks of FM: its return code, faults left aside; -9 while it is down.
  [[nodiscard]] fmReturn Activate(int id);
  [[nodiscard]] fmReturn Deactivate(int id);
  [[nodiscard]] fmReturn SetActivated(std::span<const std::uint32_t> ids);

  // Sets the state itself, up or down: exactly these are active and routed. kInvalidArgument for an
  // id that the board lacks, or two that share a GPU.
  [[nodiscard]] Status SetActive(const std::set<int>& ids);
  [[nodiscard]] std::set<int> active() const;  // what the list says; none while it waits
  [[nodiscard]] std::set<int> routed() const;  // what has NVLink
  [[nodiscard]] bool waiting() const;          // up, for the list of active partitions

  // How often each call came over the wire, whatever the answer; those of Activate and so on here
  // do not count.
  [[nodiscard]] std::map<WireCall, int> calls() const;

  void SetFaults(FabricManagerFaults faults);
  [[nodiscard]] FabricManagerFaults faults() const;

  // Each waits until it is so; false after `timeout`.
  [[nodiscard]] bool AwaitHeldCall(absl::Duration timeout) const;  // a call is left unanswered
  [[nodiscard]] bool AwaitActive(const std::set<int>& ids, absl::Duration timeout) const;
  [[nodiscard]] bool AwaitStopped(absl::Duration timeout) const;
  [[nodiscard]] bool AwaitServing(absl::Duration timeout) const;  // up, and waits for no list
  // That many of these calls came, as calls() counts them.
  [[nodiscard]] bool AwaitCalls(WireCall call, int count, absl::Duration timeout) const;

 private:
  Result<std::vector<WireServer::Listener>> Listen() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void StopLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lifecycle_mutex_);
  Status StartLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lifecycle_mutex_);
  // Ends the server and removes its sockets, from whichever thread takes it.
  void EndServer();
  // The window's worker: FM exits at `end` unless the list has come.
  absl::Duration WatchWindow(absl::Duration end);

  // The server's handler, and its parts.
  WireServer::Answer AnswerTo(const WireRequest& request, bool internal);
  WireServer::Answer AnswerToList(const WireRequest& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  WireServer::Answer HoldLateChange(const WireRequest& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  WireServer::Answer TakeTimeToChange(const WireRequest& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  fmReturn Change(const WireRequest& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  fmReturn ChangeFromHere(WireCall call, std::span<const std::uint32_t> ids);

  const Board board_;
  const Options options_;
  RealClock real_clock_;
  Clock& clock_;

  absl::Mutex lifecycle_mutex_;  // one Start, Stop or Restart at a time
  std::unique_ptr<Worker> window_ ABSL_GUARDED_BY(lifecycle_mutex_);

  mutable absl::Mutex mutex_;
  std::string tcp_ ABSL_GUARDED_BY(mutex_);  // with the chosen port after the first Start
  Partitions partitions_ ABSL_GUARDED_BY(mutex_);
  FabricManagerFaults faults_ ABSL_GUARDED_BY(mutex_);
  std::map<WireCall, int> calls_ ABSL_GUARDED_BY(mutex_);
  int held_calls_ ABSL_GUARDED_BY(mutex_) = 0;
  bool up_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<WireServer> server_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace switchyard::sim
