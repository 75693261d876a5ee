// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which GPU (PCI address) sits where on the board (module id), and who says so. Immutable once
// joined; any thread.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/pci_address.h"
#include "base/status.h"
#include "fabric/module_set.h"
#include "fabric/partition_table.h"

namespace switchyard::fabric {

enum class MapSource { kFile, kNvml, kFabricManager, kRemembered };
[[nodiscard]] absl::string_view MapSourceName(
    MapSource source);  // "file", "nvml", "fm", "remembered"

using ModuleEntries = std::map<PciAddress, ModuleId>;

// The file: one flat JSON object, PCI address in any spelling -> module id as a number or a string,
// {"00000000:1B:00.0": "1"}. At most 64 KiB. kInvalidArgument names the file, key, value and rule:
// not 1..16, not a whole number, nested, a module twice, an address twice in two spellings.
[[nodiscard]] Result<ModuleEntries> ParseModuleMap(absl::string_view json,
                                                   absl::string_view file_name);
// The same as text: addresses as sysfs spells them, sorted, values as strings (every known reader
// takes those).
[[nodiscard]] std::string FormatModuleMap(const ModuleEntries& entries);

class ModuleMap {
 public:
  struct Entry {
    ModuleId module = 0;
    std::vector<MapSource> sources;  // all that name it, in the order of the enum
    std::string origin;              // the file's path, for kFile
  };

  // What the sources said. Several files: each with its path.
  struct Input {
    std::vector<std::pair<std::string, ModuleEntries>> files;
    ModuleEntries nvml;
    ModuleEntries fabric_manager;  // see EntriesOf
    ModuleEntries remembered;
  };

  // Files, NVML and FM are joined per address. Two that give one address different modules, or two
  // addresses one module, leave those entries out, each with an error in errors(). Remembered
  // entries fill only addresses and modules that none of the others names.
  [[nodiscard]] static ModuleMap Join(const Input& input);

  [[nodiscard]] std::optional<ModuleId> ModuleOf(const PciAddress& address) const;
  [[nodiscard]] std::optional<PciAddress> AddressOf(ModuleId module) const;
  [[nodiscard]] const std::map<PciAddress, Entry>& entries() const { return entries_; }
  [[nodiscard]] const std::vector<std::string>& errors() const { return errors_; }

 private:
  std::map<PciAddress, Entry> entries_;
  std::map<ModuleId, PciAddress> by_module_;
  std::vector<std::string> errors_;
};

// FM's own pciBusId as a source (A100 and older): address -> physical id, which is FM's position of
// the GPU. Used only if no file and no NVML names one of these addresses: physical ids and module
// ids are two numberings there and must not be mixed. Empty if FM gives no addresses, or ids
// outside 1..16.
[[nodiscard]] ModuleEntries EntriesOf(const FabricList& list, const ModuleMap::Input& others);

}  // namespace switchyard::fabric
