// SPDX-License-Identifier: Apache-2.0
#include "sim/board/board.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/files.h"
#include "sim/board/built_in_boards.h"
#include "sim/board/derive.h"

namespace switchyard::sim {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxBoardBytes = 1 << 20;
constexpr int kMaxModule = 16;
constexpr size_t kMaxPartitions = 64;  // FM's own limit
constexpr int kMaxNvLinks = 64;        // FM's own limit
constexpr int kMaxId = 1 << 30;

// Reads one JSON object; every error says where it stands.
class Reader {
 public:
  Reader(const Json& json, std::string where) : json_(json), where_(std::move(where)) {}

  [[nodiscard]] Status Fail(absl::string_view key, absl::string_view rule) const {
    return absl::InvalidArgumentError(
        absl::StrCat(where_, ": ", key,
                     json_.is_object() && json_.contains(std::string(key))
                         ? absl::StrCat(" = ", Brief(json_[std::string(key)]))
                         : std::string(),
                     ": ", rule));
  }

  [[nodiscard]] Status CheckKeys(const std::set<std::string>& known) const {
    if (!json_.is_object()) {
      return absl::InvalidArgumentError(absl::StrCat(where_, ": must be a JSON object"));
    }
    for (const auto& [key, value] : json_.items()) {
      if (!known.contains(key)) {
        return Fail(key, absl::StrCat("unknown key; known are ", absl::StrJoin(known, ", ")));
      }
    }
    return OkStatus();
  }

  [[nodiscard]] bool Has(const char* key) const { return json_.contains(key); }

  [[nodiscard]] Result<int> Int(const char* key, int least, int most) const {
    if (!Has(key)) return Fail(key, "is missing");
    const Json& value = json_[key];
    if (!value.is_number_integer() || value < least || value > most) {
      return Fail(key, absl::StrCat("must be a whole number from ", least, " to ", most));
    }
    return value.get<int>();
  }

  [[nodiscard]] Result<std::string> Text(const char* key, size_t most) const {
    if (!Has(key)) return Fail(key, "is missing");
    const Json& value = json_[key];
    if (!value.is_string() || value.get_ref<const std::string&>().empty() ||
        value.get_ref<const std::string&>().size() > most) {
      return Fail(key, absl::StrCat("must be a text of 1 to ", most, " bytes"));
    }
    return value.get<std::string>();
  }

  [[nodiscard]] Result<std::string> OneOf(const char* key,
                                          const std::set<std::string>& choices) const {
    ASSIGN_OR_RETURN(std::string text, Text(key, 64));
    if (!choices.contains(text)) {
      return Fail(key, absl::StrCat("must be one of ", absl::StrJoin(choices, ", ")));
    }
    return text;
  }

  // A list of 0..most objects or numbers.
  [[nodiscard]] Result<const Json*> List(const char* key, size_t most) const {
    if (!Has(key)) return Fail(key, "is missing");
    const Json& value = json_[key];
    if (!value.is_array() || value.size() > most) {
      return Fail(key, absl::StrCat("must be a list of at most ", most));
    }
    return &value;
  }

 private:
  static std::string Brief(const Json& value) {
    std::string text = value.is_structured()
                           ? value.type_name()
                           : value.dump(-1, ' ', true, Json::error_handler_t::replace);
    if (text.size() > 60) text = text.substr(0, 57) + "...";
    return text;
  }

  const Json& json_;
  std::string where_;
};

Result<BoardPartition> ReadPartition(const Json& json, const std::string& where) {
  const Reader reader(json, where);
  RETURN_IF_ERROR(reader.CheckKeys({"id", "gpus", "nvlinksPerGpu"}));
  BoardPartition partition;
  ASSIGN_OR_RETURN(partition.id, reader.Int("id", 0, kMaxId));
  ASSIGN_OR_RETURN(partition.nvlinks_per_gpu, reader.Int("nvlinksPerGpu", 0, kMaxNvLinks));
  ASSIGN_OR_RETURN(const Json* gpus, reader.List("gpus", kMaxModule));
  if (gpus->empty()) return reader.Fail("gpus", "a partition has at least one GPU");
  for (const Json& gpu : *gpus) {
    if (!gpu.is_number_integer() || gpu < 1 || gpu > kMaxModule) {
      return reader.Fail("gpus", absl::StrCat("every one is a module id, 1 to ", kMaxModule));
    }
    partition.modules.push_back(gpu.get<int>());
  }
  std::sort(partition.modules.begin(), partition.modules.end());
  if (std::adjacent_find(partition.modules.begin(), partition.modules.end()) !=
      partition.modules.end()) {
    return reader.Fail("gpus", "names a module twice");
  }
  return partition;
}

// "0x2330" or 9008.
Result<int> ReadDeviceId(const Reader& reader, const Json& json) {
  if (!json["deviceId"].is_string()) return reader.Int("deviceId", 1, 0xffff);
  const std::string text = json["deviceId"];
  std::uint32_t value = 0;
  if (!absl::StartsWith(text, "0x") || text.size() > 6 || !absl::SimpleHexAtoi(text, &value) ||
      value == 0) {
    return reader.Fail("deviceId", "must be a PCI device id such as \"0x2330\"");
  }
  return static_cast<int>(value);
}

Result<BoardDevice> ReadDevice(const Json& json, const std::string& where) {
  const Reader reader(json, where);
  RETURN_IF_ERROR(reader.CheckKeys({"module", "address", "numaNode", "physicalId", "deviceId"}));
  BoardDevice device;
  ASSIGN_OR_RETURN(device.module, reader.Int("module", 1, kMaxModule));
  ASSIGN_OR_RETURN(std::string address, reader.Text("address", 32));
  Result<PciAddress> parsed = PciAddress::Parse(address);
  if (!parsed.ok()) return reader.Fail("address", parsed.status().message());
  device.address = *parsed;
  if (reader.Has("numaNode")) {
    ASSIGN_OR_RETURN(device.numa_node, reader.Int("numaNode", -1, 1023));
  }
  if (reader.Has("physicalId")) {
    ASSIGN_OR_RETURN(device.physical_id, reader.Int("physicalId", 1, kMaxId));
  }
  if (reader.Has("deviceId")) {
    ASSIGN_OR_RETURN(int id, ReadDeviceId(reader, json));
    device.device_id = static_cast<std::uint16_t>(id);
  }
  return device;
}

Status ReadPartitions(const Reader& reader, const std::string& file, Board& board) {
  ASSIGN_OR_RETURN(const Json* list, reader.List("partitions", kMaxPartitions));
  std::set<int> ids;
  for (size_t i = 0; i < list->size(); ++i) {
    const std::string where = absl::StrCat(file, ": partitions[", i, "]");
    ASSIGN_OR_RETURN(BoardPartition partition, ReadPartition((*list)[i], where));
    if (!ids.insert(partition.id).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": id = ", partition.id, ": stands there twice"));
    }
    board.partitions.push_back(std::move(partition));
  }
  std::sort(board.partitions.begin(), board.partitions.end(),
            [](const auto& a, const auto& b) { return a.id < b.id; });
  return OkStatus();
}

Status ReadDevices(const Reader& reader, const std::string& file, Board& board) {
  ASSIGN_OR_RETURN(const Json* list, reader.List("devices", kMaxModule));
  std::set<int> modules;
  std::set<PciAddress> addresses;
  for (size_t i = 0; i < list->size(); ++i) {
    const std::string where = absl::StrCat(file, ": devices[", i, "]");
    ASSIGN_OR_RETURN(BoardDevice device, ReadDevice((*list)[i], where));
    if (!modules.insert(device.module).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": module = ", device.module, ": stands there twice"));
    }
    if (!addresses.insert(device.address).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": address = ", device.address.ToString(), ": stands there twice"));
    }
    board.devices.push_back(std::move(device));
  }
  std::sort(board.devices.begin(), board.devices.end(),
            [](const auto& a, const auto& b) { return a.module < b.module; });
  return OkStatus();
}

std::set<int> ModulesOfPartitions(const Board& board) {
  std::set<int> modules;
  for (const BoardPartition& partition : board.partitions) {
    modules.insert(partition.modules.begin(), partition.modules.end());
  }
  return modules;
}

Result<Board> ReadBoard(const Json& json, const std::string& file, std::uint64_t seed) {
  const Reader reader(json, file);
  RETURN_IF_ERROR(reader.CheckKeys({"board", "description", "gpuIdentity", "returnCodes",
                                    "nvlinkLineRateMBps", "partitions", "devices", "note"}));
  Board board;
  ASSIGN_OR_RETURN(board.name, reader.Text("board", 64));
  if (reader.Has("description")) {
    ASSIGN_OR_RETURN(board.description, reader.Text("description", 1024));
  }
  ASSIGN_OR_RETURN(std::string identity, reader.OneOf("gpuIdentity", {"module", "pci"}));
  board.identity_by_pci = identity == "pci";
  ASSIGN_OR_RETURN(board.return_codes,
                   reader.OneOf("returnCodes", {"ampere", "blackwell", "hopper"}));
  ASSIGN_OR_RETURN(board.nvlink_line_rate_mbps, reader.Int("nvlinkLineRateMBps", 0, kMaxId));
  RETURN_IF_ERROR(ReadPartitions(reader, file, board));

  const std::set<int> modules = ModulesOfPartitions(board);
  if (reader.Has("devices")) {
    RETURN_IF_ERROR(ReadDevices(reader, file, board));
  } else {
    DeriveDevices(board, modules, seed);
  }
  if (board.devices.empty()) return reader.Fail("partitions", "the board has no GPU at all");
  for (int module : modules) {
    if (board.FindModule(module) == nullptr) {
      return reader.Fail(
          "devices", absl::StrCat("module ", module, " is in a partition and has no device here"));
    }
  }
  CompleteDevices(board, seed);
  DeriveNvSwitches(board);
  return board;
}

}  // namespace

const BoardDevice* Board::FindModule(int module) const {
  for (const BoardDevice& device : devices) {
    if (device.module == module) return &device;
  }
  return nullptr;
}

const BoardPartition* Board::FindPartition(int id) const {
  for (const BoardPartition& partition : partitions) {
    if (partition.id == id) return &partition;
  }
  return nullptr;
}

Result<Board> ParseBoard(absl::string_view json, absl::string_view file_name, std::uint64_t seed) {
  const std::string file(file_name);
  if (json.size() > kMaxBoardBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, ": longer than ", kMaxBoardBytes, " bytes"));
  }
  const Json parsed = Json::parse(json.begin(), json.end(), nullptr, /*allow_exceptions=*/false);
  if (parsed.is_discarded()) return absl::InvalidArgumentError(absl::StrCat(file, ": not JSON"));
  return ReadBoard(parsed, file, seed);
}

Result<Board> LoadBoard(const std::string& name_or_file, const std::string& boards_folder,
                        std::uint64_t seed) {
  if (!absl::EndsWith(name_or_file, ".json") && boards_folder.empty()) {
    const auto& boards = BuiltInBoards();
    const auto it = boards.find(name_or_file);
    if (it != boards.end()) return ParseBoard(it->second, absl::StrCat(it->first, ".json"), seed);
    return absl::NotFoundError(absl::StrCat(
        "no board \"", name_or_file, "\": there are ",
        absl::StrJoin(boards, ", ",
                      [](std::string* out, const auto& entry) { out->append(entry.first); }),
        ", or give a file that ends in .json"));
  }
  const std::string path = absl::EndsWith(name_or_file, ".json")
                               ? name_or_file
                               : absl::StrCat(boards_folder, "/", name_or_file, ".json");
  ASSIGN_OR_RETURN(std::string text, ReadFile(path, kMaxBoardBytes));
  return ParseBoard(text, path, seed);
}

}  // namespace switchyard::sim
