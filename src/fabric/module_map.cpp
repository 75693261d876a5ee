// SPDX-License-Identifier: Apache-2.0
#include "fabric/module_map.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace switchyard::fabric {
namespace {

// What one source says of one GPU.
struct Claim {
  PciAddress address;
  ModuleId module = 0;
  MapSource source = MapSource::kFile;
  std::string origin;  // the file's path, for kFile
};

std::string SourceText(const Claim& claim) {
  return claim.origin.empty() ? std::string(MapSourceName(claim.source)) : claim.origin;
}

void Append(std::vector<Claim>& claims, const ModuleEntries& entries, MapSource source,
            const std::string& origin = "") {
  for (const auto& [address, module] : entries) claims.push_back({address, module, source, origin});
}

// "0000:19:00.0 = 3 (nvml), 0000:19:00.0 = 4 (/run/map.json)"
std::string Text(const std::vector<const Claim*>& claims) {
  return absl::StrJoin(claims, ", ", [](std::string* out, const Claim* c) {
    absl::StrAppend(out, c->address.ToString(), " = ", c->module, " (", SourceText(*c), ")");
  });
}

bool IsModule(ModuleId module) { return module >= kMinModule && module <= kMaxModule; }

// Claims that can't be true, each with an error: a module id out of range, an address with two
// modules, a module with two addresses. Whoever has a part in one is out; nobody is believed more.
std::set<const Claim*> Contradictions(const std::vector<Claim>& claims,
                                      std::vector<std::string>& errors) {
  std::set<const Claim*> bad;
  std::map<PciAddress, std::vector<const Claim*>> of_address;
  std::map<ModuleId, std::vector<const Claim*>> of_module;
  for (const Claim& claim : claims) {
    if (IsModule(claim.module)) {
      of_address[claim.address].push_back(&claim);
      of_module[claim.module].push_back(&claim);
      continue;
    }
    bad.insert(&claim);
    errors.push_back(absl::StrCat("module map: ", Text({&claim}), ": a module id is ", kMinModule,
                                  " to ", kMaxModule, "; the entry is left out"));
  }
  const auto check = [&](const std::vector<const Claim*>& same, const std::string& what,
                         const auto& other) {
    const bool agree = std::all_of(same.begin(), same.end(), [&](const Claim* c) {
      return other(*c) == other(*same.front());
    });
    if (agree) return;
    bad.insert(same.begin(), same.end());
    errors.push_back(absl::StrCat("module map: ", what, ": ", Text(same),
                                  "; these entries are left out until the sources agree"));
  };
  for (const auto& [address, same] : of_address) {
    check(same, absl::StrCat(address.ToString(), " has two modules"),
          [](const Claim& c) { return c.module; });
  }
  for (const auto& [module, same] : of_module) {
    check(same, absl::StrCat("module ", module, " has two addresses"),
          [](const Claim& c) { return c.address; });
  }
  return bad;
}

}  // namespace

absl::string_view MapSourceName(MapSource source) {
  switch (source) {
    case MapSource::kFile:
      return "file";
    case MapSource::kNvml:
      return "nvml";
    case MapSource::kFabricManager:
      return "fm";
    case MapSource::kRemembered:
      return "remembered";
  }
  return "unknown";
}

ModuleMap ModuleMap::Join(const Input& input) {
  ModuleMap map;
  // In the order of the enum, which is the order of Entry::sources.
  std::vector<Claim> present;
  for (const auto& [path, entries] : input.files) Append(present, entries, MapSource::kFile, path);
  Append(present, input.nvml, MapSource::kNvml);
  Append(present, input.fabric_manager, MapSource::kFabricManager);

  std::set<PciAddress> named_addresses;
  std::set<ModuleId> named_modules;
  for (const Claim& claim : present) {
    named_addresses.insert(claim.address);
    named_modules.insert(claim.module);
  }
  // A memory has nothing to say where somebody speaks, unless it is the same.
  std::vector<Claim> remembered;
  std::vector<Claim> confirming;
  for (const auto& [address, module] : input.remembered) {
    const Claim claim{address, module, MapSource::kRemembered, ""};
    const bool named = named_addresses.contains(address) || named_modules.contains(module);
    (named ? confirming : remembered).push_back(claim);
  }

  const auto take = [&map](const std::vector<Claim>& claims) {
    const std::set<const Claim*> bad = Contradictions(claims, map.errors_);
    for (const Claim& claim : claims) {
      if (bad.contains(&claim)) continue;
      Entry& entry = map.entries_[claim.address];
      entry.module = claim.module;
      if (entry.sources.empty() || entry.sources.back() != claim.source)
        entry.sources.push_back(claim.source);
      if (entry.origin.empty()) entry.origin = claim.origin;
      map.by_module_[claim.module] = claim.address;
    }
  };
  take(present);
  take(remembered);
  for (const Claim& claim : confirming) {
    const auto it = map.entries_.find(claim.address);
    if (it != map.entries_.end() && it->second.module == claim.module)
      it->second.sources.push_back(MapSource::kRemembered);
  }
  return map;
}

std::optional<ModuleId> ModuleMap::ModuleOf(const PciAddress& address) const {
  const auto it = entries_.find(address);
  return it == entries_.end() ? std::nullopt : std::optional(it->second.module);
}

std::optional<PciAddress> ModuleMap::AddressOf(ModuleId module) const {
  const auto it = by_module_.find(module);
  return it == by_module_.end() ? std::nullopt : std::optional(it->second);
}

ModuleEntries EntriesOf(const FabricList& list, const ModuleMap::Input& others) {
  const auto named = [&others](const PciAddress& address) {
    return others.nvml.contains(address) ||
           std::any_of(others.files.begin(), others.files.end(),
                       [&](const auto& file) { return file.second.contains(address); });
  };
  ModuleEntries entries;
  for (const FabricPartition& partition : list.partitions) {
    for (const FabricGpu& gpu : partition.gpus) {
      if (!gpu.address) continue;
      if (gpu.physical_id < unsigned{kMinModule} || gpu.physical_id > unsigned{kMaxModule})
        return {};
      if (named(*gpu.address)) return {};
      const auto module = static_cast<ModuleId>(gpu.physical_id);
      const auto [it, inserted] = entries.emplace(*gpu.address, module);
      // FM contradicts itself: nothing it says of positions can be used.
      if (!inserted && it->second != module) return {};
    }
  }
  return entries;
}

}  // namespace switchyard::fabric
