// SPDX-License-Identifier: Apache-2.0
#pragma once

// The fabric with a stopwatch: each call goes through, and how long it took is measured as
// "fabric_call", by call and outcome. One that was ended to let a change go first is not: its time
// is nobody's. Borrows everything; threads as FabricControl's.

#include "base/clock.h"
#include "base/event.h"
#include "fabric/fabric_control.h"

namespace switchyard::agent {

class TimedFabric final : public fabric::FabricControl {
 public:
  TimedFabric(fabric::FabricControl& fabric, Clock& clock, EventSink& events)
      : fabric_(fabric), clock_(clock), events_(events) {}

  Result<fabric::FabricList> ReadPartitions() override;
  Result<fabric::ModuleEntries> ReadModuleIds() override;
  Result<fabric::FabricList> Activate(int partition, absl::Duration within) override;
  Result<fabric::FabricList> Deactivate(int partition, absl::Duration within) override;
  Result<fabric::FabricList> SetActivated(std::span<const int> partitions) override;

 private:
  template <typename Call>
  auto Time(absl::string_view name, Call call);

  fabric::FabricControl& fabric_;
  Clock& clock_;
  EventSink& events_;
};

}  // namespace switchyard::agent
