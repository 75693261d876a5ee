// SPDX-License-Identifier: Apache-2.0
#pragma once

// What we know of the fabric, kept up to date: reads Fabric Manager, NVML and the map files, joins
// them, remembers what it learned, and reports what changed. One thread; what it hands out is
// immutable. A reader that fails leaves the last list in force.

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/event.h"
#include "fabric/fabric_reader.h"
#include "tenancy/fabric_memory.h"
#include "tenancy/map_sources.h"
#include "tenancy/picture.h"

namespace switchyard::tenancy {

class FabricState {
 public:
  struct Parts {
    Clock* clock = nullptr;
    EventSink* events = nullptr;
    store::Store* store = nullptr;           // may be null
    fabric::FabricReader* reader = nullptr;  // may be null
    BootId boot = {};                        // of the kernel now; unknown: matches no other
  };

  FabricState(std::vector<std::string> map_files, Parts parts);

  // What is remembered. Once, before the first Refresh.
  [[nodiscard]] std::shared_ptr<const FabricKnowledge> Load();

  // Reads everything once.
  [[nodiscard]] std::shared_ptr<const FabricKnowledge> Refresh();

  // Once what Refresh returned is in force: keeps it in the store, and reports what changed, so
  // that whoever hears an event finds it true. Events: fabric_up, fabric_down, table_changed,
  // active_changed, map_changed, map_error.
  void Settle();

  // What the last Refresh got from Fabric Manager: the list of now, or why not.
  [[nodiscard]] Result<fabric::FabricList> LastRead() const;
  // The list in force, remembered ones included. One of another boot has no active partitions: a
  // reboot ends them all.
  [[nodiscard]] std::optional<fabric::FabricList> ListOfThisBoot() const;

 private:
  void ReadList();
  void ReportDown(const Status& status);
  void ReportListChange(const fabric::FabricList& list);
  void ReportMap(const fabric::ModuleMap& map, const std::vector<std::string>& errors);
  [[nodiscard]] fabric::ModuleEntries WhatToRemember(const fabric::ModuleMap& map) const;
  [[nodiscard]] std::shared_ptr<const FabricKnowledge> Publish(
      fabric::ModuleMap map, std::vector<std::string> map_errors) const;

  const std::vector<std::string> map_files_;
  const Parts parts_;
  FabricMemory memory_;

  fabric::ModuleEntries remembered_;
  std::optional<FabricMemory::List> list_;  // the last one; its time is that of its first reading
  absl::Time read_at_ = absl::InfinitePast();  // when it was last confirmed
  Status last_read_ = absl::UnavailableError("Fabric Manager was not read yet");
  bool was_read_ = false;
  Status last_attempt_ = last_read_;  // as last_read_, but also one that was ended by ourselves

  fabric::ModuleEntries reported_map_;
  std::set<std::string> reported_errors_;
  std::vector<Event> to_report_;
};

}  // namespace switchyard::tenancy
