// SPDX-License-Identifier: Apache-2.0
#pragma once

// Who holds what: the live tenancies, and the rules they obey at every moment. It refuses a change
// that would break one of them (kInternal: a mistake of ours), so that nothing wrong is ever
// written to the journal or carried out. Not thread-safe; no I/O.
//
//   (none) -> planned, activating, active (adopted)      planned    -> activating, gone
//   activating -> active, releasing, gone (never was)    active     -> activating, releasing
//   releasing  -> active (called off), gone
//
// A record may always be written again in the state it has.

#include <cstdint>
#include <optional>
#include <vector>

#include "base/status.h"
#include "fabric/module_set.h"
#include "fabric/partition_table.h"
#include "tenancy/record.h"

namespace switchyard::tenancy {

class Ledger {
 public:
  [[nodiscard]] const std::vector<TenancyRecord>& records() const { return records_; }  // by id
  [[nodiscard]] const TenancyRecord* Find(std::uint64_t id) const;
  [[nodiscard]] const TenancyRecord* FindExact(fabric::ModuleSet modules) const;
  [[nodiscard]] const TenancyRecord* FindByDevice(const PciAddress& address) const;
  [[nodiscard]] fabric::ModuleSet modules() const { return modules_; }  // of all of them
  [[nodiscard]] std::uint64_t NextId(std::uint64_t at_least) const;

  // Invariant 1: no module and no function in two tenancies; and the states above.
  [[nodiscard]] Status CheckPut(const TenancyRecord& record) const;
  // From the journal, in whatever state: invariant 1 only.
  [[nodiscard]] Status Restore(TenancyRecord record);
  // Precondition: CheckPut said OK.
  void Put(TenancyRecord record);
  [[nodiscard]] Status CheckRemove(std::uint64_t id) const;
  void Remove(std::uint64_t id);

 private:
  [[nodiscard]] Status CheckAlone(const TenancyRecord& record) const;

  std::vector<TenancyRecord> records_;
  fabric::ModuleSet modules_;
};

// Whether Fabric Manager may be asked to activate `partition` for tenancy `id`: the tenancy is in
// the ledger as activating, the sets are equal, and no other active partition touches them
// (invariants 2 and 4).
[[nodiscard]] Status CheckActivate(const Ledger& ledger, const fabric::PartitionTable& table,
                                   std::uint64_t id, const fabric::Partition& partition);

// Whether `partition` may be deactivated: no member may be held, and it is a tenancy's that is in
// the ledger as releasing or, overlapping none, one of `foreign`, as the journal has them
// (invariants 3 and 4).
[[nodiscard]] Status CheckDeactivate(const Ledger& ledger,
                                     const std::vector<fabric::ModuleSet>& foreign,
                                     fabric::ModuleSet held, const fabric::Partition& partition);

}  // namespace switchyard::tenancy
