// SPDX-License-Identifier: Apache-2.0
#pragma once

// The journal in the store: kind "tenancy", the id as key, a record as JSON; and kind
// "tenancy_foreign", and "tenancy_drain" while the operator drains the node. Durable when a call
// returns. What can't be read is reported and left where it is. One caller, like Journal.

#include <string>
#include <vector>

#include "store/store.h"
#include "tenancy/journal.h"

namespace switchyard::tenancy {

class StoreJournal final : public Journal {
 public:
  explicit StoreJournal(store::Store& store) : store_(store) {}

  Result<Content> Load() override;
  Status Write(const TenancyRecord& record) override;
  Status Erase(std::uint64_t id) override;
  Status WriteForeign(std::span<const fabric::ModuleSet> foreign, const BootId& boot) override;
  Status WriteDraining(bool draining) override;

 private:
  store::Store& store_;
};

// For support; read-only stores too. What Load would refuse or leave out, and records that
// contradict each other, one line each; none: the journal is sound.
[[nodiscard]] Result<std::vector<std::string>> VerifyJournal(store::Store& store);
// Everything as it stands, as one JSON object:
// {"records":{KEY:TEXT},"foreign":{KEY:TEXT},"draining":BOOLEAN}.
[[nodiscard]] Result<std::string> ExportJournal(store::Store& store);

}  // namespace switchyard::tenancy
