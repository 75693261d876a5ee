// SPDX-License-Identifier: Apache-2.0
// `switchyard mapping create` and `mapping set`: write the module-map file.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "agent/config_values.h"
#include "apps/command.h"
#include "apps/fabric_helper.h"
#include "apps/load_config.h"
#include "apps/module_map_file.h"
#include "apps/output.h"
#include "pci/inventory.h"

namespace switchyard::apps {
namespace {

using fabric::ModuleEntries;
using fabric::ModuleId;
using nlohmann::ordered_json;

std::string OutputFile(const Arguments& arguments) {
  return arguments.Has("--output") ? arguments.Get("--output") : kOwnModuleMap;
}

std::optional<PciAddress> HolderOf(const ModuleEntries& entries, ModuleId module) {
  for (const auto& [address, known] : entries) {
    if (known == module) return address;
  }
  return std::nullopt;
}

void Report(const Arguments& arguments, const agent::Config& config, ModuleMapFile& file) {
  const std::vector<std::string>& read = config.fabric.module_map;
  const bool is_read = std::find(read.begin(), read.end(), file.path()) != read.end();
  if (arguments.json) {
    ordered_json entries = ordered_json::object();
    for (const auto& [address, module] : file.entries()) entries[address.ToString()] = module;
    PrintJson({{"file", file.path()}, {"entries", entries}, {"inModuleMap", is_read}});
    return;
  }
  Print(absl::StrCat("wrote ", file.entries().size(), " entries to ", file.path()));
  if (!is_read) Print("note: the agent does not read that file: add it to fabric.moduleMap");
}

// What NVML says takes the place of what the file said of the same GPU or the same module.
void Merge(const ModuleEntries& fresh, ModuleEntries& entries) {
  for (const auto& [address, module] : fresh) {
    if (const auto holder = HolderOf(entries, module)) entries.erase(*holder);
  }
  for (const auto& [address, module] : fresh) entries[address] = module;
}

Status CheckModules(const ModuleEntries& entries) {
  fabric::ModuleSet seen;
  for (const auto& [address, module] : entries) {
    if (module < fabric::kMinModule || module > fabric::kMaxModule || seen.Contains(module)) {
      return absl::DataLossError(
          absl::StrCat("NVML says module ", module, " of ", address.ToString(),
                       ": ids must be 1 to 16, each once; nothing was written"));
    }
    seen.Insert(module);
  }
  return OkStatus();
}

Status Create(const Arguments& arguments) {
  ASSIGN_OR_RETURN(const agent::LoadedConfig loaded, LoadConfigOf(arguments));
  fabric::FabricHelper helper(HelperOptionsOf(loaded.config));
  ASSIGN_OR_RETURN(const ModuleEntries fresh, helper.ReadModuleIds());
  if (fresh.empty()) {
    return absl::FailedPreconditionError(
        "NVML knows no GPU with a module id: it sees only GPUs that are on the nvidia driver, on "
        "an NVSwitch board. Bind them to it, run this again, and bind them back; or name each "
        "with `switchyard mapping set ADDRESS MODULE`");
  }
  RETURN_IF_ERROR(CheckModules(fresh));
  ASSIGN_OR_RETURN(ModuleMapFile file, ModuleMapFile::Open(OutputFile(arguments)));
  Merge(fresh, file.entries());
  RETURN_IF_ERROR(file.Save());
  Report(arguments, loaded.config, file);
  return OkStatus();
}

Status CheckIsGpu(const agent::Config& config, const PciAddress& address) {
  ASSIGN_OR_RETURN(const pci::Inventory inventory, pci::Scan(HostRoot(config.paths.host_root)));
  const pci::Device* device = inventory.Find(address);
  if (device != nullptr && device->self.IsGpu()) return OkStatus();
  return absl::NotFoundError(absl::StrCat(
      address.ToString(), " is no NVIDIA GPU of this node: ", "`switchyard inventory` lists them"));
}

Status CheckModuleIsFree(const PciAddress& address, ModuleId module, bool replace,
                         ModuleEntries& entries) {
  const std::optional<PciAddress> holder = HolderOf(entries, module);
  if (!holder.has_value() || *holder == address) return OkStatus();
  if (!replace) {
    return absl::AlreadyExistsError(
        absl::StrCat("module ", module, " is ", holder->ToString(),
                     " already: one module is one GPU. Give --replace to take it from there"));
  }
  entries.erase(*holder);
  return OkStatus();
}

Status Set(const Arguments& arguments) {
  const Result<PciAddress> address = PciAddress::Parse(arguments.Get("ADDRESS"));
  if (!address.ok()) return UsageStatus(address.status().message());
  ModuleId module = 0;
  const std::string text = arguments.Get("MODULE");
  if (!absl::SimpleAtoi(text, &module) || module < fabric::kMinModule ||
      module > fabric::kMaxModule) {
    return UsageStatus(absl::StrCat("MODULE: ", agent::Quote(text), " is no module id: 1 to 16"));
  }
  ASSIGN_OR_RETURN(const agent::LoadedConfig loaded, LoadConfigOf(arguments));
  RETURN_IF_ERROR(CheckIsGpu(loaded.config, *address));
  ASSIGN_OR_RETURN(ModuleMapFile file, ModuleMapFile::Open(OutputFile(arguments)));
  RETURN_IF_ERROR(CheckModuleIsFree(*address, module, arguments.Has("--replace"), file.entries()));
  file.entries()[*address] = module;
  RETURN_IF_ERROR(file.Save());
  Report(arguments, loaded.config, file);
  return OkStatus();
}

int RunCreate(const Arguments& arguments) {
  const Status done = Create(arguments);
  return done.ok() ? kExitOk : Fail(done);
}

int RunSet(const Arguments& arguments) {
  const Status done = Set(arguments);
  return done.ok() ? kExitOk : Fail(done);
}

}  // namespace

Command MappingCreateCommand() {
  Command command;
  command.name = "mapping create";
  command.summary = "Write the module map from NVML, while the GPUs are on the nvidia driver";
  command.details =
      "Examples:\n"
      "  switchyard mapping create\n"
      "  switchyard mapping create --output /etc/switchyard/module-map.json\n"
      "Entries of GPUs that NVML does not see now stay. Takes every configuration flag of\n"
      "`switchyard agent`.";
  command.options = {{"--output", "FILE", absl::StrCat("default ", kOwnModuleMap)}};
  command.takes_config = true;
  command.run = RunCreate;
  return command;
}

Command MappingSetCommand() {
  Command command;
  command.name = "mapping set";
  command.summary = "Say which module id a GPU has";
  command.details =
      "Examples:\n"
      "  switchyard mapping set 0000:0f:00.0 5\n"
      "  switchyard mapping set 0000:0f:00.0 5 --replace   # module 5 was another GPU's\n"
      "How to find a module id: docs/module-map.md. Takes every configuration flag of\n"
      "`switchyard agent`.";
  command.options = {{"ADDRESS", "", "PCI address of a GPU of this node", true},
                     {"MODULE", "", "its module id, 1 to 16", true},
                     {"--output", "FILE", absl::StrCat("default ", kOwnModuleMap)},
                     {"--replace", "", "take the module from the GPU that has it in the file"}};
  command.takes_config = true;
  command.run = RunSet;
  return command;
}

}  // namespace switchyard::apps
