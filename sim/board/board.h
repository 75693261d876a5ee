// SPDX-License-Identifier: Apache-2.0
#pragma once

// A board of the simulator: its partition table as Fabric Manager would list it, and where each GPU
// sits. Plain value; immutable once loaded; any thread.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/pci_address.h"
#include "base/status.h"

namespace switchyard::sim {

struct BoardPartition {
  int id = 0;
  std::vector<int> modules;  // 1..16
  int nvlinks_per_gpu = 0;
};

struct BoardDevice {
  int module = 0;
  PciAddress address;
  int numa_node = -1;
  int physical_id = 0;  // what FM calls the GPU: the module id on H100 and later
  std::uint16_t device_id = 0;
  std::string uuid;  // empty unless the board is known by PCI address (FM lists it there only)
};

struct Board {
  std::string name;
  std::string description;
  bool identity_by_pci = false;  // "gpuIdentity": FM names GPUs by pciBusId (A100 and older)
  std::string return_codes;      // "ampere", "hopper", "blackwell"
  int nvlink_line_rate_mbps = 0;
  std::vector<BoardPartition> partitions;  // ascending id
  std::vector<BoardDevice> devices;        // ascending module; every module of the partitions
  std::vector<PciAddress> nvswitches;      // none on Blackwell
  std::uint16_t nvswitch_device_id = 0;

  [[nodiscard]] const BoardDevice* FindModule(int module) const;    // null: no such module
  [[nodiscard]] const BoardPartition* FindPartition(int id) const;  // null: no such partition
};

// Reads a board's text. Optional key "devices" ({module, address, numaNode, physicalId, deviceId},
// the last three of them optional); without it they are derived from `seed`: addresses never in
// module order, the two halves of the modules on NUMA node 0 and 1, physical ids as the board's
// identity demands. kInvalidArgument names file, key, value and rule.
[[nodiscard]] Result<Board> ParseBoard(absl::string_view json, absl::string_view file_name,
                                       std::uint64_t seed);

// `name_or_file`: a name such as "hgx-h100" (<boards_folder>/NAME.json, or one of the boards
// compiled in when `boards_folder` is empty), or a path that ends in .json. kNotFound lists the
// names there are.
[[nodiscard]] Result<Board> LoadBoard(const std::string& name_or_file,
                                      const std::string& boards_folder, std::uint64_t seed);

}  // namespace switchyard::sim
