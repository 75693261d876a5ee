// SPDX-License-Identifier: Apache-2.0
// The simulator's libnvidia-ml.so.1: tells the module id of each GPU that is on the nvidia driver
// in a simulated sysfs. It finds its data beside itself, in ../nvml.json seen from its own folder:
//   {"root": "/tmp/node", "gpus": [{"address": "0000:0f:00.0", "module": 5}, ...]}
// and lists the GPUs whose <root>/sys/bus/pci/devices/<address>/driver links to .../nvidia when
// nvmlInit_v2 is called. None of them, or no data: the driver is not loaded. Module 0: a GPU that
// is on no baseboard.
#include <dlfcn.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/nvml/nvml_abi.h"

namespace switchyard::sim {
namespace {

struct Gpu {
  unsigned domain = 0, bus = 0, device = 0;
  unsigned module = 0;
};

bool initialized = false;

std::vector<Gpu>& Gpus() {
  static std::vector<Gpu> gpus;
  return gpus;
}

std::string DataPath() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<void*>(&DataPath), &info) == 0) return "";
  const std::string self = info.dli_fname;
  const auto slash = self.rfind('/');
  return (slash == std::string::npos ? std::string(".") : self.substr(0, slash)) + "/../nvml.json";
}

bool IsOnNvidia(const std::string& root, const std::string& address) {
  const std::string link = root + "/sys/bus/pci/devices/" + address + "/driver";
  char target[PATH_MAX];
  const ssize_t length = ::readlink(link.c_str(), target, sizeof(target));
  if (length <= 0) return false;
  const std::string text(target, static_cast<std::size_t>(length));
  return text.substr(text.rfind('/') + 1) == "nvidia";  // npos + 1 is 0
}

void LoadGpus() {
  Gpus().clear();
  std::ifstream file(DataPath());
  const auto data = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!data.is_object()) return;
  const std::string root = data.value("root", "");
  for (const auto& entry : data.value("gpus", nlohmann::json::array())) {
    const std::string address = entry.value("address", "");
    Gpu gpu;
    gpu.module = entry.value("module", 0u);
    if (std::sscanf(address.c_str(), "%x:%x:%x", &gpu.domain, &gpu.bus, &gpu.device) == 3 &&
        IsOnNvidia(root, address)) {
      Gpus().push_back(gpu);
    }
  }
}

Gpu* Find(nvmlDevice device) {
  for (Gpu& gpu : Gpus()) {
    if (&gpu == device) return &gpu;
  }
  return nullptr;
}

}  // namespace
}  // namespace switchyard::sim

using namespace switchyard::sim;

extern "C" {

#define EXPORTED __attribute__((visibility("default")))

EXPORTED nvmlReturn nvmlInit_v2() {
  try {
    LoadGpus();
  } catch (const nlohmann::json::exception&) {  // a value of another type
    Gpus().clear();
  }
  initialized = !Gpus().empty();
  return initialized ? NVML_SUCCESS : NVML_ERROR_DRIVER_NOT_LOADED;
}

EXPORTED nvmlReturn nvmlShutdown() {
  if (!initialized) return NVML_ERROR_UNINITIALIZED;
  initialized = false;
  return NVML_SUCCESS;
}

EXPORTED nvmlReturn nvmlDeviceGetCount_v2(unsigned* count) {
  if (!initialized) return NVML_ERROR_UNINITIALIZED;
  if (count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *count = static_cast<unsigned>(Gpus().size());
  return NVML_SUCCESS;
}

EXPORTED nvmlReturn nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice* device) {
  if (!initialized) return NVML_ERROR_UNINITIALIZED;
  if (device == nullptr || index >= Gpus().size()) return NVML_ERROR_INVALID_ARGUMENT;
  *device = &Gpus()[index];
  return NVML_SUCCESS;
}

EXPORTED nvmlReturn nvmlDeviceGetPciInfo_v3(nvmlDevice device, nvmlPciInfo* info) {
  if (!initialized) return NVML_ERROR_UNINITIALIZED;
  const Gpu* gpu = Find(device);
  if (gpu == nullptr || info == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *info = {};
  info->domain = gpu->domain;
  info->bus = gpu->bus;
  info->device = gpu->device;
  std::snprintf(info->busIdLegacy, sizeof(info->busIdLegacy), "%04X:%02X:%02X.0",
                gpu->domain & 0xffffu, gpu->bus & 0xffu, gpu->device & 0xffu);
  std::snprintf(info->busId, sizeof(info->busId), "%08X:%02X:%02X.0", gpu->domain, gpu->bus,
                gpu->device);
  return NVML_SUCCESS;
}

EXPORTED nvmlReturn nvmlDeviceGetModuleId(nvmlDevice device, unsigned* module) {
  if (!initialized) return NVML_ERROR_UNINITIALIZED;
  const Gpu* gpu = Find(device);
  if (gpu == nullptr || module == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *module = gpu->module;
  return NVML_SUCCESS;
}

EXPORTED const char* nvmlErrorString(nvmlReturn code) {
  switch (code) {
    case NVML_SUCCESS:
      return "The operation was successful";
    case NVML_ERROR_UNINITIALIZED:
      return "Uninitialized";
    case NVML_ERROR_INVALID_ARGUMENT:
      return "Invalid Argument";
    case NVML_ERROR_DRIVER_NOT_LOADED:
      return "Driver Not Loaded";
    default:
      return "Unknown Error";
  }
}

}  // extern "C"
