// SPDX-License-Identifier: Apache-2.0
#include "tenancy/fabric_state.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace switchyard::tenancy {
namespace {

using fabric::FabricList;
using fabric::ModuleEntries;
using fabric::ModuleMap;

ModuleEntries EntriesOfMap(const ModuleMap& map) {
  ModuleEntries entries;
  for (const auto& [address, entry] : map.entries()) entries.emplace(address, entry.module);
  return entries;
}

// "3,4"; at most 64 ids.
std::string ActiveIds(const FabricList& list) {
  std::vector<int> ids;
  for (const auto& partition : list.partitions) {
    if (partition.active) ids.push_back(partition.id);
  }
  std::sort(ids.begin(), ids.end());
  return absl::StrJoin(ids, ",");
}

FabricList WithoutActive(FabricList list) {
  for (auto& partition : list.partitions) partition.active = false;
  return list;
}

}  // namespace

FabricState::FabricState(std::vector<std::string> map_files, Parts parts)
    : map_files_(std::move(map_files)), parts_(parts), memory_(parts.store, parts.events) {}

std::shared_ptr<const FabricKnowledge> FabricState::Load() {
  remembered_ = memory_.LoadMap();
  list_ = memory_.LoadList();
  if (list_) read_at_ = list_->read_at;
  ModuleMap::Input input;
  input.remembered = remembered_;
  if (list_) input.fabric_manager = EntriesOf(list_->list, input);
  ModuleMap map = ModuleMap::Join(input);
  reported_map_ = EntriesOfMap(map);
  std::vector<std::string> errors = map.errors();
  return Publish(std::move(map), std::move(errors));
}

std::shared_ptr<const FabricKnowledge> FabricState::Refresh() {
  ReadList();
  MapSources sources = ReadMapSources(map_files_, parts_.reader);
  if (list_) sources.input.fabric_manager = EntriesOf(list_->list, sources.input);
  if (!sources.unusable_file) sources.input.remembered = remembered_;
  ModuleMap map = ModuleMap::Join(sources.input);

  std::vector<std::string> errors = std::move(sources.errors);
  errors.insert(errors.end(), map.errors().begin(), map.errors().end());
  ReportMap(map, errors);

  remembered_ = WhatToRemember(map);
  return Publish(std::move(map), std::move(errors));
}

void FabricState::Settle() {
  memory_.Save(remembered_, list_);
  for (const Event& event : std::exchange(to_report_, {})) parts_.events->Report(event);
}

Result<FabricList> FabricState::LastRead() const {
  if (!last_attempt_.ok()) return last_attempt_;
  if (!list_) return absl::InternalError("read, and no list is there");
  return list_->list;
}

std::optional<FabricList> FabricState::ListOfThisBoot() const {
  if (!list_) return std::nullopt;
  const bool same = parts_.boot.known() && list_->boot == parts_.boot;
  return same ? list_->list : WithoutActive(list_->list);
}

void FabricState::ReadList() {
  if (parts_.reader == nullptr) return;
  Result<FabricList> list = parts_.reader->ReadPartitions();
  last_attempt_ = list.status();
  // Ended by ourselves, to stop or to let somebody else go first: nothing was learned.
  if (absl::IsCancelled(list.status())) return;
  const Status status = list.status();
  if (!list.ok()) {
    if (!was_read_ || status != last_read_) ReportDown(status);
  } else {
    if (!was_read_ || !last_read_.ok()) {
      to_report_.push_back(
          {"fabric_up",
           Severity::kInfo,
           absl::StrCat("Fabric Manager lists ", list->partitions.size(), " partitions"),
           {{"partitions", absl::StrCat(list->partitions.size())}, {"active", ActiveIds(*list)}}});
    }
    ReportListChange(*list);
    read_at_ = parts_.clock->Now();
    if (!list_ || list_->list != *list || list_->boot != parts_.boot)
      list_ = {*std::move(list), read_at_, parts_.boot};
  }
  last_read_ = status;
  was_read_ = true;
}

void FabricState::ReportDown(const Status& status) {
  to_report_.push_back(
      {"fabric_down",
       Severity::kWarning,
       absl::StrCat("Fabric Manager can't be read: ", std::string(status.message()),
                    list_ ? "; going on with the partition list of before"
                          : "; no partition list is known, so there is no preference until it is"),
       {{"code", absl::StatusCodeToString(status.code())}, {"known", list_ ? "true" : "false"}}});
}

void FabricState::ReportListChange(const FabricList& list) {
  const std::string active = ActiveIds(list);
  if (!list_ || WithoutActive(list_->list) != WithoutActive(list)) {
    to_report_.push_back(
        {"table_changed",
         list_ ? Severity::kWarning : Severity::kInfo,
         absl::StrCat("the partition table ", list_ ? "changed" : "is known", ": ",
                      list.partitions.size(), " partitions"),
         {{"partitions", absl::StrCat(list.partitions.size())}, {"active", active}}});
  } else if (const std::string before = ActiveIds(list_->list); before != active) {
    to_report_.push_back({"active_changed",
                          Severity::kInfo,
                          absl::StrCat("active partitions are ", active.empty() ? "none" : active,
                                       ", before ", before.empty() ? "none" : before),
                          {{"active", active}, {"before", before}}});
  }
}

void FabricState::ReportMap(const ModuleMap& map, const std::vector<std::string>& errors) {
  for (const std::string& error : errors) {
    if (!reported_errors_.contains(error)) {
      to_report_.push_back({"map_error", Severity::kError, error, {}});
    }
  }
  reported_errors_ = {errors.begin(), errors.end()};
  ModuleEntries entries = EntriesOfMap(map);
  if (entries != reported_map_) {
    to_report_.push_back({"map_changed",
                          Severity::kInfo,
                          absl::StrCat("the module map has ", entries.size(), " GPUs"),
                          {{"gpus", absl::StrCat(entries.size())}}});
  }
  reported_map_ = std::move(entries);
}

// What a file or NVML said, now or before, as long as nothing newer speaks of that GPU or module.
// FM's own addresses come back with its list; its physical ids are another numbering and would mix.
ModuleEntries FabricState::WhatToRemember(const ModuleMap& map) const {
  ModuleEntries entries;
  std::set<fabric::ModuleId> modules;
  for (const auto& [address, entry] : map.entries()) {
    modules.insert(entry.module);
    const bool only_fm =
        std::all_of(entry.sources.begin(), entry.sources.end(),
                    [](fabric::MapSource s) { return s == fabric::MapSource::kFabricManager; });
    if (!only_fm) entries.emplace(address, entry.module);
  }
  for (const auto& [address, module] : remembered_) {
    if (!map.ModuleOf(address) && !modules.contains(module)) entries.emplace(address, module);
  }
  return entries;
}

std::shared_ptr<const FabricKnowledge> FabricState::Publish(
    ModuleMap map, std::vector<std::string> map_errors) const {
  auto knowledge = std::make_shared<FabricKnowledge>();
  knowledge->known = list_.has_value();
  knowledge->up = was_read_ && last_read_.ok();
  if (!knowledge->up) knowledge->error = std::string(last_read_.message());
  knowledge->read_at = read_at_;
  if (list_) knowledge->table = MakeTable(list_->list, map);
  knowledge->map = std::move(map);
  knowledge->map_errors = std::move(map_errors);
  return knowledge;
}

}  // namespace switchyard::tenancy
