// SPDX-License-Identifier: Apache-2.0
#pragma once

// What is remembered of the fabric over restarts, in the store: kind "module_map" (PCI address ->
// module id) and kind "fabric_list" ("list" -> the list as JSON, "read_at" -> RFC 3339, when this
// list was first read, "boot" -> the kernel's boot id then). One thread. The store may be null:
// nothing is kept.

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "base/event.h"
#include "fabric/module_map.h"
#include "fabric/partition_table.h"
#include "store/store.h"
#include "tenancy/record.h"

namespace switchyard::tenancy {

class FabricMemory {
 public:
  struct List {
    fabric::FabricList list;
    absl::Time read_at;
    BootId boot = {};  // of the kernel, when it was read
    friend bool operator==(const List&, const List&) = default;
  };

  FabricMemory(store::Store* store, EventSink* events) : store_(store), events_(events) {}

  // What can't be read is reported (event "memory_error") and left out.
  [[nodiscard]] fabric::ModuleEntries LoadMap();
  [[nodiscard]] std::optional<List> LoadList();

  // Writes only what changed since the last save that succeeded. A failure is reported once until
  // one succeeds, and tried again with the next call.
  void Save(const fabric::ModuleEntries& map, const std::optional<List>& list);

 private:
  [[nodiscard]] Status Write(const fabric::ModuleEntries& map, const std::optional<List>& list);
  void ReportLoad(absl::string_view what, const Status& status);

  store::Store* const store_;
  EventSink* const events_;
  fabric::ModuleEntries saved_map_;
  std::optional<List> saved_list_;
  bool failing_ = false;
};

}  // namespace switchyard::tenancy
