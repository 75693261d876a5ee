// SPDX-License-Identifier: Apache-2.0
#pragma once

// Vendor libraries run in a helper process: one, long-lived, one call at a time, one FM connection
// a call. At the deadline it is killed and started anew with the next call, so a hung or crashing
// libnvfm or NVML never takes the agent with it, and the agent itself never holds /dev/nvidia*.

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/child_process.h"
#include "fabric/fabric_control.h"
#include "fabric/fm_change.h"

namespace switchyard::fabric {

struct HelperRequest;

struct HelperOptions {
  // How to start the helper: {"/proc/self/exe", "fabric-helper"}. Its descriptor 3 is the channel.
  std::vector<std::string> command;
  FabricAddress address;
  std::string fabric_library;  // path of libnvfm.so.1; empty = the loader's search
  std::string nvml_library;    // path of libnvidia-ml.so.1; empty = the loader's search
  absl::Duration timeout = absl::Seconds(15);  // connect, change and read together
};

class FabricHelper final : public FabricControl {
 public:
  explicit FabricHelper(HelperOptions options);
  ~FabricHelper() override;

  Result<FabricList> ReadPartitions() override;
  Result<ModuleEntries> ReadModuleIds() override;
  Result<FabricList> Activate(int partition, absl::Duration within) override;
  Result<FabricList> Deactivate(int partition, absl::Duration within) override;
  Result<FabricList> SetActivated(std::span<const int> partitions) override;

  // For the agent's stop: no call goes on for longer than this from now on, and every one after it
  // returns kCancelled. A call in flight keeps its own limit. Any thread.
  void CloseWithin(absl::Duration time);
  // For the agent's stop: ends a call in flight by killing the helper; that call and every later
  // one return kCancelled. Any thread.
  void Close();

 private:
  class Channel;
  enum class InFlight { kNothing, kRead, kChange };
  Result<FabricList> Change(FabricChange change, absl::Duration within);
  [[nodiscard]] HelperRequest RequestToFabricManager(absl::Duration within) const;
  // `asked` names the other side, and what it is to do, in errors.
  Result<std::string> Call(const HelperRequest& request, absl::Duration within,
                           absl::string_view asked);
  // A change does not wait for a read: it kills the helper under one in flight, and those to come
  // wait for it. Another change goes on to its end: killing it halfway would leave nobody knowing
  // whether it happened.
  Result<Channel*> BeginCall(InFlight what, absl::Duration deadline);
  // Gives the channel back for its end unless it may be kept.
  std::unique_ptr<Channel> EndCall(bool keep);

  const HelperOptions options_;
  absl::Mutex mutex_;
  std::unique_ptr<Channel> channel_ ABSL_GUARDED_BY(mutex_);
  InFlight in_flight_ ABSL_GUARDED_BY(mutex_) = InFlight::kNothing;  // one call at a time
  int changes_waiting_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Duration closes_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteDuration();  // monotonic
};

// The helper's own main: serves requests on `fd` until it is closed. Returns the exit code.
int RunFabricHelper(int fd);

}  // namespace switchyard::fabric
