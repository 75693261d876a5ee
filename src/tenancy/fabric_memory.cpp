// SPDX-License-Identifier: Apache-2.0
#include "tenancy/fabric_memory.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace switchyard::tenancy {
namespace {

constexpr absl::string_view kMap = "module_map";
constexpr absl::string_view kList = "fabric_list";

Result<fabric::ModuleId> ParseModule(const std::string& text) {
  int module = 0;
  if (!absl::SimpleAtoi(text, &module) || module < fabric::kMinModule ||
      module > fabric::kMaxModule) {
    return absl::DataLossError(
        absl::StrCat("module \"", text.substr(0, 64), "\" is not 1 to ", fabric::kMaxModule));
  }
  return module;
}

Result<FabricMemory::List> ReadList(store::Store& store) {
  ASSIGN_OR_RETURN(const auto json, store.Get(kList, "list"));
  if (!json) return absl::NotFoundError("no list yet");
  FabricMemory::List list;
  ASSIGN_OR_RETURN(list.list, fabric::FabricListFromJson(*json));
  ASSIGN_OR_RETURN(const auto time, store.Get(kList, "read_at"));
  std::string error;
  if (!time || !absl::ParseTime(absl::RFC3339_full, *time, &list.read_at, &error)) {
    list.read_at = absl::InfinitePast();
  }
  ASSIGN_OR_RETURN(const auto boot, store.Get(kList, "boot"));
  if (boot) list.boot = BootId::Parse(*boot).value_or(BootId{});
  return list;
}

}  // namespace

fabric::ModuleEntries FabricMemory::LoadMap() {
  fabric::ModuleEntries entries;
  if (store_ == nullptr) return entries;
  const auto facts = store_->List(kMap);
  if (!facts.ok()) {
    ReportLoad("the module map", facts.status());
    return entries;
  }
  for (const auto& [key, value] : *facts) {
    const Result<PciAddress> address = PciAddress::Parse(key);
    const Result<fabric::ModuleId> module = ParseModule(value);
    if (address.ok() && module.ok()) {
      entries.emplace(*address, *module);
    } else {
      ReportLoad(absl::StrCat("the module map's entry ", key.substr(0, 64)),
                 address.ok() ? module.status() : address.status());
    }
  }
  return entries;
}

std::optional<FabricMemory::List> FabricMemory::LoadList() {
  if (store_ == nullptr) return std::nullopt;
  Result<List> list = ReadList(*store_);
  if (list.ok()) return *std::move(list);
  if (!absl::IsNotFound(list.status())) ReportLoad("the partition list", list.status());
  return std::nullopt;
}

void FabricMemory::Save(const fabric::ModuleEntries& map, const std::optional<List>& list) {
  if (store_ == nullptr || (!failing_ && map == saved_map_ && list == saved_list_)) return;
  const Status status = Write(map, list);
  if (!status.ok() && !failing_) {
    events_->Report({"memory_error",
                     Severity::kError,
                     absl::StrCat("what was learned of the fabric can't be kept over a restart: ",
                                  std::string(status.message()), "; look at the state folder"),
                     {}});
  }
  failing_ = !status.ok();
  saved_map_ = map;
  saved_list_ = list;
}

// The store itself writes nothing for a value that is the same.
Status FabricMemory::Write(const fabric::ModuleEntries& map, const std::optional<List>& list) {
  ASSIGN_OR_RETURN(const auto facts, store_->List(kMap));
  for (const auto& [key, value] : facts) {
    const Result<PciAddress> address = PciAddress::Parse(key);
    if (!address.ok() || !map.contains(*address) || address->ToString() != key) {
      RETURN_IF_ERROR(store_->Remove(kMap, key));
    }
  }
  for (const auto& [address, module] : map) {
    RETURN_IF_ERROR(store_->Put(kMap, address.ToString(), absl::StrCat(module)));
  }
  if (!list) return OkStatus();
  RETURN_IF_ERROR(store_->Put(kList, "list", fabric::FabricListToJson(list->list)));
  RETURN_IF_ERROR(store_->Put(kList, "boot", list->boot.ToString()));
  return store_->Put(kList, "read_at",
                     absl::FormatTime(absl::RFC3339_full, list->read_at, absl::UTCTimeZone()));
}

void FabricMemory::ReportLoad(absl::string_view what, const Status& status) {
  events_->Report({"memory_error",
                   Severity::kError,
                   absl::StrCat(what, " that was remembered can't be used and is left out: ",
                                std::string(status.message())),
                   {}});
}

}  // namespace switchyard::tenancy
