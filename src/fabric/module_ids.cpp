// SPDX-License-Identifier: Apache-2.0
#include "fabric/module_ids.h"

#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"

namespace switchyard::fabric {
namespace {

constexpr unsigned kMaxDevices = 256;  // far above any machine; bounds the loop

absl::StatusCode CanonicalCode(nvml::Return code) {
  switch (code) {
    case nvml::kTimeout:
      return absl::StatusCode::kUnavailable;
    case nvml::kNoPermission:
      return absl::StatusCode::kPermissionDenied;
    case nvml::kLibRmVersionMismatch:
      return absl::StatusCode::kFailedPrecondition;
    default:
      return absl::StatusCode::kInternal;
  }
}

absl::string_view Advice(nvml::Return code) {
  switch (code) {
    case nvml::kNoPermission:
      return "; run the agent as root, with /dev/nvidiactl visible";
    case nvml::kLibRmVersionMismatch:
      return "; reboot, or reload the driver, after its upgrade";
    default:
      return "; see the kernel's log, and nvidia-smi";
  }
}

Status CallError(NvmlApi& nvml, absl::string_view function, nvml::Return code) {
  const char* text = nvml.ErrorString(code);
  return Status(CanonicalCode(code),
                absl::StrCat("NVML: ", function, " returned ", code, " (",
                             text == nullptr ? "no text" : text, ")", Advice(code)));
}

bool DriverIsAbsent(nvml::Return code) {
  return code == nvml::kUninitialized || code == nvml::kNotFound ||
         code == nvml::kDriverNotLoaded || code == nvml::kLibraryNotFound;
}

struct Position {
  PciAddress address;
  ModuleId module = 0;
};

// Nothing for a GPU that is not on a baseboard.
Result<std::optional<Position>> ReadDevice(NvmlApi& nvml, unsigned index) {
  nvml::Device device = nullptr;
  if (const auto code = nvml.DeviceGetHandleByIndex(index, &device); code != nvml::kSuccess) {
    return CallError(nvml, absl::StrCat("nvmlDeviceGetHandleByIndex_v2 of GPU ", index), code);
  }
  nvml::PciInfo info{};
  if (const auto code = nvml.DeviceGetPciInfo(device, &info); code != nvml::kSuccess) {
    return CallError(nvml, absl::StrCat("nvmlDeviceGetPciInfo_v3 of GPU ", index), code);
  }
  const std::size_t length = ::strnlen(info.bus_id, sizeof(info.bus_id));
  ASSIGN_OR_RETURN(const PciAddress address, PciAddress::Parse({info.bus_id, length}));
  unsigned module = 0;
  const auto code = nvml.DeviceGetModuleId(device, &module);
  if (code == nvml::kNotSupported || (code == nvml::kSuccess && module == 0)) return std::nullopt;
  if (code != nvml::kSuccess) {
    return CallError(nvml, absl::StrCat("nvmlDeviceGetModuleId of ", address.ToString()), code);
  }
  if (module > static_cast<unsigned>(kMaxModule)) {
    return absl::DataLossError(absl::StrCat("NVML: module id ", module, " of ", address.ToString(),
                                            " is not 1 to ", kMaxModule,
                                            "; name the right one in the module map file"));
  }
  return Position{address, static_cast<ModuleId>(module)};
}

Result<ModuleEntries> ReadAll(NvmlApi& nvml) {
  unsigned count = 0;
  if (const auto code = nvml.DeviceGetCount(&count); code != nvml::kSuccess) {
    return CallError(nvml, "nvmlDeviceGetCount_v2", code);
  }
  if (count > kMaxDevices) {
    return absl::DataLossError(
        absl::StrCat("NVML: it counts ", count, " GPUs; at most ", kMaxDevices, " are possible"));
  }
  ModuleEntries entries;
  Status first_failure;
  unsigned failures = 0;
  for (unsigned index = 0; index < count; ++index) {
    const Result<std::optional<Position>> position = ReadDevice(nvml, index);
    if (!position.ok()) {
      if (failures++ == 0) first_failure = position.status();
    } else if (position->has_value()) {
      entries[(*position)->address] = (*position)->module;
    }
  }
  if (failures > 0 && failures == count) return first_failure;
  return entries;
}

}  // namespace

Result<ModuleEntries> ReadModuleIdsFrom(NvmlApi& nvml) {
  if (const auto code = nvml.Init(); code != nvml::kSuccess) {
    if (DriverIsAbsent(code)) return ModuleEntries();
    return CallError(nvml, "nvmlInit_v2", code);
  }
  Result<ModuleEntries> entries = ReadAll(nvml);
  (void)nvml.Shutdown();  // nothing is left to do about a failure
  return entries;
}

Result<ModuleEntries> ReadModuleIdsFromLibrary(const std::string& path) {
  const Result<std::unique_ptr<NvmlApi>> nvml = LoadNvml(path);
  if (absl::IsNotFound(nvml.status())) return ModuleEntries();
  RETURN_IF_ERROR(nvml.status());
  return ReadModuleIdsFrom(**nvml);
}

}  // namespace switchyard::fabric
