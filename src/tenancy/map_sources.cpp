// SPDX-License-Identifier: Apache-2.0
#include "tenancy/map_sources.h"

#include "absl/strings/str_cat.h"
#include "base/files.h"

namespace switchyard::tenancy {
namespace {

constexpr size_t kMaxFile = size_t{64} << 10;

Result<fabric::ModuleEntries> ReadMapFile(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxFile));
  return fabric::ParseModuleMap(text, path);
}

}  // namespace

MapSources ReadMapSources(const std::vector<std::string>& files, fabric::FabricReader* reader) {
  MapSources sources;
  for (const std::string& path : files) {
    Result<fabric::ModuleEntries> entries = ReadMapFile(path);
    if (entries.ok()) {
      sources.input.files.emplace_back(path, *std::move(entries));
    } else if (!absl::IsNotFound(entries.status())) {
      sources.unusable_file = true;
      sources.errors.push_back(absl::StrCat(
          "module map: ", std::string(entries.status().message()),
          "; correct or remove the file: until then neither its entries nor remembered ones are "
          "used"));
    }
  }
  if (reader == nullptr) return sources;
  Result<fabric::ModuleEntries> nvml = reader->ReadModuleIds();
  if (nvml.ok()) {
    sources.input.nvml = *std::move(nvml);
  } else if (!absl::IsNotFound(nvml.status()) && !absl::IsCancelled(nvml.status())) {
    sources.errors.push_back(absl::StrCat("module map: reading module ids from NVML: ",
                                          std::string(nvml.status().message())));
  }
  return sources;
}

}  // namespace switchyard::tenancy
