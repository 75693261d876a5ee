// SPDX-License-Identifier: Apache-2.0
#pragma once

// The durable record of every tenancy, written before the hardware is touched. The Enforcer is its
// only writer, one call at a time. A change is durable when its call has returned OK; after an
// error it may or may not be there, and is written again.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "fabric/module_set.h"
#include "tenancy/record.h"

namespace switchyard::tenancy {

class Journal {
 public:
  struct Content {
    std::vector<TenancyRecord> records;      // ascending id
    std::vector<fabric::ModuleSet> foreign;  // active partitions that were found, not made by us
    BootId foreign_boot;                     // in which that was so
    bool draining = false;                   // the operator lets no new tenancy begin
    // What was there and can't be used, each with key and rule. Whatever they were may run: what
    // is active, listed and held is asked instead.
    std::vector<std::string> lost;
  };

  virtual ~Journal() = default;
  // kFailedPrecondition: written by a newer version, nothing may be touched.
  [[nodiscard]] virtual Result<Content> Load() = 0;
  [[nodiscard]] virtual Status Write(const TenancyRecord& record) = 0;
  // An unknown id is fine.
  [[nodiscard]] virtual Status Erase(std::uint64_t id) = 0;
  // Replaces the former ones.
  [[nodiscard]] virtual Status WriteForeign(std::span<const fabric::ModuleSet> foreign,
                                            const BootId& boot) = 0;
  [[nodiscard]] virtual Status WriteDraining(bool draining) = 0;
};

}  // namespace switchyard::tenancy
