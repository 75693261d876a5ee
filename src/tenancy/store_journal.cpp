// SPDX-License-Identifier: Apache-2.0
#include "tenancy/store_journal.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "fabric/strict_json.h"
#include "nlohmann/json.hpp"
#include "tenancy/ledger.h"
#include "tenancy/record_json.h"

namespace switchyard::tenancy {
namespace {

using nlohmann::json;

constexpr absl::string_view kRecords = "tenancy";
constexpr absl::string_view kForeign = "tenancy_foreign";
constexpr absl::string_view kForeignKey = "list";
constexpr absl::string_view kDrain = "tenancy_drain";  // there while it is so
constexpr absl::string_view kDrainKey = "node";
constexpr size_t kMaxForeign = 64 * 1024;

std::string NameOf(absl::string_view kind, absl::string_view key) {
  return absl::StrCat("journal ", kind, " ", absl::CHexEscape(key.substr(0, 64)));
}

Status ReadForeign(absl::string_view text, Journal::Content& content) {
  const std::string name = NameOf(kForeign, kForeignKey);
  ASSIGN_OR_RETURN(const json value, fabric::ParseStrictJson(text, name, kMaxForeign));
  if (const auto version = value.find("version");
      version != value.end() && version->is_number_integer() && *version > kRecordVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat(name, ": version ", version->dump(), " is newer than ", kRecordVersion,
                     ", the newest this switchyard knows; start the newer switchyard again"));
  }
  ASSIGN_OR_RETURN(const fabric::JsonObject object,
                   fabric::JsonObject::Make(value, name, "", {"version", "boot", "sets"}, {}));
  ASSIGN_OR_RETURN(const std::string boot, object.String("boot", 64));
  ASSIGN_OR_RETURN(const json* sets, object.Array("sets"));
  std::vector<fabric::ModuleSet> foreign;
  for (const json& set : *sets) {
    fabric::ModuleSet modules;
    if (!set.is_array()) return object.Bad("sets", "each is a list of module ids");
    for (const json& module : set) {
      if (!module.is_number_integer() || module < fabric::kMinModule ||
          module > fabric::kMaxModule) {
        return object.Bad("sets", "a module id is 1 to 16");
      }
      modules.Insert(module.get<int>());
    }
    foreign.push_back(modules);
  }
  Result<BootId> parsed = BootId::Parse(boot);
  if (!parsed.ok()) return object.Bad("boot", parsed.status().message());
  content.foreign_boot = *parsed;
  content.foreign = std::move(foreign);
  return OkStatus();
}

}  // namespace

Result<Journal::Content> StoreJournal::Load() {
  Content content;
  ASSIGN_OR_RETURN(const auto records, store_.List(kRecords));
  for (const auto& [key, text] : records) {
    Result<TenancyRecord> record = ParseRecord(text, NameOf(kRecords, key));
    if (absl::IsFailedPrecondition(record.status())) return record.status();
    if (record.ok() && absl::StrCat(record->id) != key) {
      record = absl::InvalidArgumentError(
          absl::StrCat(NameOf(kRecords, key), ": id: ", record->id, " is not its key"));
    }
    if (record.ok()) {
      content.records.push_back(*std::move(record));
    } else {
      content.lost.emplace_back(record.status().message());
    }
  }
  std::sort(content.records.begin(), content.records.end(),
            [](const TenancyRecord& a, const TenancyRecord& b) { return a.id < b.id; });
  ASSIGN_OR_RETURN(const auto draining, store_.Get(kDrain, kDrainKey));
  content.draining = draining.has_value();
  ASSIGN_OR_RETURN(const auto foreign, store_.Get(kForeign, kForeignKey));
  if (!foreign) return content;
  if (const Status read = ReadForeign(*foreign, content); absl::IsFailedPrecondition(read)) {
    return read;
  } else if (!read.ok()) {
    content.lost.emplace_back(read.message());
  }
  return content;
}

Status StoreJournal::Write(const TenancyRecord& record) {
  return store_.Put(kRecords, absl::StrCat(record.id), FormatRecord(record));
}

Status StoreJournal::Erase(std::uint64_t id) { return store_.Remove(kRecords, absl::StrCat(id)); }

Status StoreJournal::WriteForeign(std::span<const fabric::ModuleSet> foreign, const BootId& boot) {
  json sets = json::array();
  for (const fabric::ModuleSet modules : foreign) sets.push_back(modules.ToVector());
  const json value = {
      {"version", kRecordVersion}, {"boot", boot.ToString()}, {"sets", std::move(sets)}};
  return store_.Put(kForeign, kForeignKey, value.dump());
}

Status StoreJournal::WriteDraining(bool draining) {
  return draining ? store_.Put(kDrain, kDrainKey, "true") : store_.Remove(kDrain, kDrainKey);
}

Result<std::vector<std::string>> VerifyJournal(store::Store& store) {
  StoreJournal journal(store);
  Result<Journal::Content> content = journal.Load();
  if (absl::IsFailedPrecondition(content.status()))
    return std::vector<std::string>{std::string(content.status().message())};
  RETURN_IF_ERROR(content.status());
  std::vector<std::string> problems = std::move(content->lost);
  Ledger ledger;
  for (TenancyRecord& record : content->records) {
    if (const Status restored = ledger.Restore(std::move(record)); !restored.ok())
      problems.emplace_back(restored.message());
  }
  return problems;
}

Result<std::string> ExportJournal(store::Store& store) {
  json out = {{"records", json::object()}, {"foreign", json::object()}};
  ASSIGN_OR_RETURN(const auto records, store.List(kRecords));
  for (const auto& [key, text] : records) out["records"][key] = text;
  ASSIGN_OR_RETURN(const auto foreign, store.List(kForeign));
  for (const auto& [key, text] : foreign) out["foreign"][key] = text;
  ASSIGN_OR_RETURN(const auto draining, store.Get(kDrain, kDrainKey));
  out["draining"] = draining.has_value();
  return out.dump(2, ' ', false, json::error_handler_t::replace);
}

}  // namespace switchyard::tenancy
