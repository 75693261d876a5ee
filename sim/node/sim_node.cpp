// SPDX-License-Identifier: Apache-2.0
#include "sim/node/sim_node.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <random>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "sim/node/host_files.h"

namespace switchyard::sim {
namespace {

namespace fs = std::filesystem;

// A socket's path has at most 107 bytes (unix(7)); below the folder come kubelet/device-plugins/
// and a plugin's name of its own choice.
constexpr size_t kMaxDir = 48;

Status CopyFile(const std::string& from, const std::string& to) {
  std::error_code error;
  fs::copy_file(from, to, fs::copy_options::overwrite_existing, error);
  if (error) return ErrnoError(error.value(), absl::StrCat("copying ", from, " to ", to));
  return OkStatus();
}

// The order in which they get their IOMMU groups and vfio numbers: neither the modules' nor the
// addresses', so that nobody takes one number for the other and is right.
std::vector<BoardDevice> InAnyOrder(std::vector<BoardDevice> devices, std::uint64_t seed) {
  const auto by_module = [](const BoardDevice& a, const BoardDevice& b) {
    return a.module < b.module;
  };
  const auto by_address = [](const BoardDevice& a, const BoardDevice& b) {
    return a.address < b.address;
  };
  std::mt19937_64 random(seed);
  do {
    for (size_t i = devices.size(); i > 1; --i) std::swap(devices[i - 1], devices[random() % i]);
  } while (devices.size() > 2 && (std::is_sorted(devices.begin(), devices.end(), by_module) ||
                                  std::is_sorted(devices.begin(), devices.end(), by_address)));
  return devices;
}

Result<std::string> LibrariesBesideUs() {
  ASSIGN_OR_RETURN(std::string executable, ReadLink("/proc/self/exe"));
  return (fs::path(executable).parent_path().parent_path() / "lib").string();
}

}  // namespace

SimNode::SimNode(SimNodeOptions options) : options_(std::move(options)), paths_(options_.dir) {}

SimNode::~SimNode() {
  // Calls to the plugin end before the rest goes.
  kubelet_.reset();
  fm_.reset();
}

Result<std::unique_ptr<SimNode>> SimNode::Create(SimNodeOptions options) {
  if (options.dir.size() > kMaxDir || options.dir.empty() || options.dir[0] != '/') {
    return absl::InvalidArgumentError(
        absl::StrCat("folder \"", options.dir, "\": must be an absolute path of at most ", kMaxDir,
                     " bytes, since a socket's path below it has at most 107; take one in /tmp"));
  }
  auto node = std::unique_ptr<SimNode>(new SimNode(std::move(options)));
  RETURN_IF_ERROR(node->Build());
  return node;
}

Status SimNode::Build() {
  for (const std::string& folder : {paths_.host_root() + "/proc", paths_.fm(), paths_.lib(),
                                    paths_.cdi(), paths_.state(), paths_.run()}) {
    RETURN_IF_ERROR(MakeFolders(folder));
  }
  RETURN_IF_ERROR(WriteBootId());
  if (!options_.board.empty()) {
    ASSIGN_OR_RETURN(board_, LoadBoard(options_.board, "", options_.seed));
    RETURN_IF_ERROR(SetModuleMap(ModuleMapFile::kGood));
    RETURN_IF_ERROR(WriteFileAtomically(paths_.nvml_json(), NvmlText(*board_, paths_.host_root())));
  }
  if (options_.with_sysfs) RETURN_IF_ERROR(BuildSysfs());
  if (options_.with_fm) {
    RETURN_IF_ERROR(CopyLibraries());
    fm_ = std::make_unique<FabricManager>(
        *board_,
        FabricManager::Options{.tcp = options_.fm_tcp,
                               .unix_socket = paths_.fm_socket(),
                               .internal_socket = paths_.fm_internal_socket(),
                               .return_codes = options_.fm_return_codes,
                               .clock = options_.clock != nullptr ? options_.clock : &clock_});
    RETURN_IF_ERROR(fm_->Start());
  }
  if (options_.with_kubelet) {
    KubeletOptions kubelet;
    kubelet.device_plugins_folder =
        options_.device_plugins.empty() ? paths_.device_plugins() : options_.device_plugins;
    kubelet.pod_resources_folder =
        options_.pod_resources.empty() ? paths_.pod_resources() : options_.pod_resources;
    kubelet.seed = options_.seed;
    ASSIGN_OR_RETURN(kubelet.topology, ParseTopologyPolicy(options_.topology_policy));
    kubelet.clock = options_.clock != nullptr ? options_.clock : &clock_;
    kubelet_ = std::make_unique<Kubelet>(kubelet);
    RETURN_IF_ERROR(kubelet_->Start());
  }
  return WriteFileAtomically(paths_.agent_yaml(), AgentYaml());
}

Status SimNode::BuildSysfs() {
  if (!board_.has_value()) return absl::InvalidArgumentError("a sysfs tree needs a board");
  if (options_.uevents) {
    ASSIGN_OR_RETURN(UeventSender sender, UeventSender::Open());
    uevents_ = std::make_unique<UeventSender>(std::move(sender));
  }
  ASSIGN_OR_RETURN(sysfs_, SysfsTree::Create({.root = paths_.host_root(),
                                              .iommufd = options_.iommufd,
                                              .seed = options_.seed,
                                              .uevents = uevents_.get()}));
  ASSIGN_OR_RETURN(processes_, Processes::Create(paths_.host_root()));
  for (const BoardDevice& device : InAnyOrder(board_->devices, options_.seed)) {
    FunctionSpec gpu = GpuSpec(device.address, device.device_id, device.numa_node);
    gpu.driver = options_.driver == "none" ? "" : options_.driver;
    RETURN_IF_ERROR(sysfs_->Add(gpu));
  }
  for (const PciAddress& address : board_->nvswitches) {
    // Fabric Manager drives them from the host, whatever the GPUs are for.
    FunctionSpec nvswitch = NvSwitchSpec(address, board_->nvswitch_device_id);
    nvswitch.driver = "nvidia";
    RETURN_IF_ERROR(sysfs_->Add(nvswitch));
  }
  if (board_->return_codes == "blackwell") {
    for (std::uint8_t function : {0, 1}) {
      RETURN_IF_ERROR(sysfs_->Add(SwitchManagerSpec({.bus = 0x05, .function = function})));
    }
  }
  return OkStatus();
}

Status SimNode::CopyLibraries() {
  std::string from = options_.libraries;
  if (from.empty()) {
    ASSIGN_OR_RETURN(from, LibrariesBesideUs());
  }
  RETURN_IF_ERROR(CopyFile(absl::StrCat(from, "/libnvfm.so.1"), paths_.nvfm()));
  return CopyFile(absl::StrCat(from, "/libnvidia-ml.so.1"), paths_.nvml());
}

PciAddress SimNode::AddressOf(int module) const { return board_->FindModule(module)->address; }

Status SimNode::SetModuleMap(ModuleMapFile what) {
  switch (what) {
    case ModuleMapFile::kGood:
      return WriteFileAtomically(paths_.module_map(), ModuleMapText(*board_));
    case ModuleMapFile::kMalformed: {
      const std::string text = ModuleMapText(*board_);
      return WriteFileAtomically(paths_.module_map(), text.substr(0, text.size() / 2));
    }
    case ModuleMapFile::kMissing:
      if (unlink(paths_.module_map().c_str()) != 0 && errno != ENOENT) {
        return ErrnoError(errno, absl::StrCat("removing ", paths_.module_map()));
      }
      return OkStatus();
  }
  return OkStatus();
}

Status SimNode::WriteBootId() {
  const std::string folder = absl::StrCat(paths_.host_root(), "/proc/sys/kernel/random");
  RETURN_IF_ERROR(MakeFolders(folder));
  return WriteFileAtomically(absl::StrCat(folder, "/boot_id"), BootIdText(options_.seed, ++boots_));
}

Result<pid_t> SimNode::Hold(const PciAddress& address, const HolderSpec& spec) {
  for (const FunctionState& f : sysfs_->functions()) {
    if (f.spec.address != address || !f.present || !f.vfio.has_value()) continue;
    const std::string node = options_.iommufd ? absl::StrCat("dev/vfio/devices/vfio", *f.vfio)
                                              : absl::StrCat("dev/vfio/", f.group);
    return processes_->Hold(address, {node}, spec);
  }
  return absl::FailedPreconditionError(
      absl::StrCat(address.ToString(), ": is on no vfio driver, so it has no node to open"));
}

Result<int> SimNode::EndHolders(const PciAddress& address) { return processes_->Release(address); }

Status SimNode::Reboot(RebootNumbers numbers) {
  if (has_kubelet()) kubelet_->Stop();
  RETURN_IF_ERROR(WriteBootId());
  if (has_fm()) fm_->Stop();
  if (has_sysfs()) RETURN_IF_ERROR(processes_->ReleaseAll());
  if (has_sysfs() && numbers == RebootNumbers::kOthers) RETURN_IF_ERROR(sysfs_->Renumber());
  if (has_fm()) {
    RETURN_IF_ERROR(fm_->SetActive({}));
    RETURN_IF_ERROR(fm_->Start());
  }
  return has_kubelet() ? kubelet_->Reboot() : OkStatus();
}

Status SimNode::AdvanceClock(absl::Duration by) {
  if (options_.clock != nullptr) {
    return absl::FailedPreconditionError("the clock is the caller's to move");
  }
  if (by < absl::ZeroDuration()) {
    return absl::InvalidArgumentError("time can only be moved forward");
  }
  clock_.Advance(by);
  return OkStatus();
}

}  // namespace switchyard::sim
