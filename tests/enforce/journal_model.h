// SPDX-License-Identifier: Apache-2.0
#pragma once

// The model journal: what is durable, and how a disk fails. Rules asks it what was written down at
// the moment the hardware is touched.

#include <map>
#include <set>
#include <vector>

#include "tenancy/journal.h"
#include "tests/enforce/stage.h"

namespace switchyard::enforce_sim {

class JournalModel final : public tenancy::Journal {
 public:
  explicit JournalModel(Stage& stage) : stage_(stage) {}

  Result<Content> Load() override;
  Status Write(const tenancy::TenancyRecord& record) override;
  Status Erase(std::uint64_t id) override;
  Status WriteForeign(std::span<const fabric::ModuleSet> foreign,
                      const tenancy::BootId& boot) override;
  Status WriteDraining(bool draining) override;

  [[nodiscard]] const tenancy::TenancyRecord* FindExact(fabric::ModuleSet modules) const;
  [[nodiscard]] bool IsForeign(fabric::ModuleSet modules, const tenancy::BootId& boot) const;
  [[nodiscard]] std::uint64_t LastId() const {
    return records.empty() ? 0 : records.rbegin()->first;
  }
  // Everything, or one record; returns the modules that nobody remembers now.
  fabric::ModuleSet Lose();
  fabric::ModuleSet Corrupt(std::uint64_t id);

  std::map<std::uint64_t, tenancy::TenancyRecord> records;  // durable and readable
  std::set<std::uint64_t> corrupt;
  std::set<std::uint64_t> unconfirmed;  // new, and its writer was told that it failed
  std::set<std::uint64_t> doubted;      // changed, and its writer was told that it failed
  std::vector<fabric::ModuleSet> foreign;
  tenancy::BootId foreign_boot;
  bool draining = false;
  bool full = false;     // until somebody makes room
  int fail_percent = 0;  // of single writes
  std::function<void(std::uint64_t)> on_erase;
  std::function<void(const tenancy::TenancyRecord&)> on_write;  // before it is durable
  std::uint64_t changes = 0;
  std::uint64_t failures = 0;  // told to the writer

 private:
  // What a write meets: an error before or after it took effect, or the agent's end.
  template <typename Effect>
  Status Do(const char* what, const Effect& effect);

  Stage& stage_;
};

}  // namespace switchyard::enforce_sim
