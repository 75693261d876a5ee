// SPDX-License-Identifier: Apache-2.0
#include <utility>
#include <vector>

#include "fabric/dynamic_library.h"
#include "fabric/nvml.h"

namespace switchyard::fabric {
namespace {

class NvmlLibrary final : public NvmlApi {
 public:
  explicit NvmlLibrary(DynamicLibrary library) : library_(std::move(library)) {}

  Status BindAll() {
    RETURN_IF_ERROR(library_.Bind("nvmlInit_v2", init_));
    RETURN_IF_ERROR(library_.Bind("nvmlShutdown", shutdown_));
    RETURN_IF_ERROR(library_.Bind("nvmlDeviceGetCount_v2", get_count_));
    RETURN_IF_ERROR(library_.Bind("nvmlDeviceGetHandleByIndex_v2", get_handle_));
    RETURN_IF_ERROR(library_.Bind("nvmlDeviceGetPciInfo_v3", get_pci_info_));
    RETURN_IF_ERROR(library_.Bind("nvmlDeviceGetModuleId", get_module_id_));
    return library_.Bind("nvmlErrorString", error_string_);
  }

  nvml::Return Init() override { return init_(); }
  nvml::Return Shutdown() override { return shutdown_(); }
  nvml::Return DeviceGetCount(unsigned* count) override { return get_count_(count); }
  nvml::Return DeviceGetHandleByIndex(unsigned index, nvml::Device* device) override {
    return get_handle_(index, device);
  }
  nvml::Return DeviceGetPciInfo(nvml::Device device, nvml::PciInfo* info) override {
    return get_pci_info_(device, info);
  }
  nvml::Return DeviceGetModuleId(nvml::Device device, unsigned* module) override {
    return get_module_id_(device, module);
  }
  const char* ErrorString(nvml::Return code) override { return error_string_(code); }

 private:
  DynamicLibrary library_;
  nvml::Return (*init_)() = nullptr;
  nvml::Return (*shutdown_)() = nullptr;
  nvml::Return (*get_count_)(unsigned*) = nullptr;
  nvml::Return (*get_handle_)(unsigned, nvml::Device*) = nullptr;
  nvml::Return (*get_pci_info_)(nvml::Device, nvml::PciInfo*) = nullptr;
  nvml::Return (*get_module_id_)(nvml::Device, unsigned*) = nullptr;
  const char* (*error_string_)(nvml::Return) = nullptr;
};

}  // namespace

Result<std::unique_ptr<NvmlApi>> LoadNvml(const std::string& path) {
  ASSIGN_OR_RETURN(DynamicLibrary library,
                   DynamicLibrary::Open({path.empty() ? "libnvidia-ml.so.1" : path}));
  auto nvml = std::make_unique<NvmlLibrary>(std::move(library));
  RETURN_IF_ERROR(nvml->BindAll());
  return nvml;
}

}  // namespace switchyard::fabric
