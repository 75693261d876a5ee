// SPDX-License-Identifier: Apache-2.0
#include "fabric/nvfm_library.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "fabric/dynamic_library.h"

namespace switchyard::fabric {
namespace {

class NvfmLibrary final : public NvfmApi {
 public:
  explicit NvfmLibrary(DynamicLibrary library) : library_(std::move(library)) {}

  Status BindAll() {
    RETURN_IF_ERROR(library_.Bind("fmLibInit", init_));
    RETURN_IF_ERROR(library_.Bind("fmLibShutdown", shutdown_));
    RETURN_IF_ERROR(library_.Bind("fmConnect", connect_));
    RETURN_IF_ERROR(library_.Bind("fmDisconnect", disconnect_));
    RETURN_IF_ERROR(library_.Bind("fmGetSupportedFabricPartitions", get_partitions_));
    // A library without these still serves `advise`.
    (void)library_.Bind(kActivate, activate_);
    (void)library_.Bind(kDeactivate, deactivate_);
    (void)library_.Bind(kSetActivated, set_activated_);
    return OkStatus();
  }

  nvfm::Return Init() override { return init_(); }
  nvfm::Return Shutdown() override { return shutdown_(); }
  nvfm::Return Connect(void* params, nvfm::Handle* handle) override {
    return connect_(params, handle);
  }
  nvfm::Return Disconnect(nvfm::Handle handle) override { return disconnect_(handle); }
  nvfm::Return GetSupportedFabricPartitions(nvfm::Handle handle,
                                            nvfm::PartitionList* list) override {
    return get_partitions_(handle, list);
  }
  bool Has(absl::string_view function) const override {
    return (function == kActivate && activate_ != nullptr) ||
           (function == kDeactivate && deactivate_ != nullptr) ||
           (function == kSetActivated && set_activated_ != nullptr);
  }
  nvfm::Return ActivateFabricPartition(nvfm::Handle handle, std::uint32_t id) override {
    return activate_(handle, id);
  }
  nvfm::Return DeactivateFabricPartition(nvfm::Handle handle, std::uint32_t id) override {
    return deactivate_(handle, id);
  }
  nvfm::Return SetActivatedFabricPartitions(nvfm::Handle handle,
                                            nvfm::ActivatedList* list) override {
    return set_activated_(handle, list);
  }

 private:
  static constexpr char kActivate[] = "fmActivateFabricPartition";
  static constexpr char kDeactivate[] = "fmDeactivateFabricPartition";
  static constexpr char kSetActivated[] = "fmSetActivatedFabricPartitions";

  DynamicLibrary library_;
  nvfm::LibInitFunction* init_ = nullptr;
  nvfm::LibShutdownFunction* shutdown_ = nullptr;
  nvfm::ConnectFunction* connect_ = nullptr;
  nvfm::DisconnectFunction* disconnect_ = nullptr;
  nvfm::GetSupportedFabricPartitionsFunction* get_partitions_ = nullptr;
  // Null where the library lacks them.
  nvfm::ActivateFabricPartitionFunction* activate_ = nullptr;
  nvfm::DeactivateFabricPartitionFunction* deactivate_ = nullptr;
  nvfm::SetActivatedFabricPartitionsFunction* set_activated_ = nullptr;
};

}  // namespace

Result<std::unique_ptr<NvfmApi>> LoadNvfm(const std::string& path) {
  const std::vector<std::string> names =
      path.empty() ? std::vector<std::string>{"libnvfm.so.1", "libnvfm.so"}
                   : std::vector<std::string>{path};
  Result<DynamicLibrary> library = DynamicLibrary::Open(names);
  if (!library.ok()) {
    return absl::NotFoundError(absl::StrCat(
        library.status().message(),
        ": install the libnvfm of the node's Fabric Manager, or set fabric.library to its path"));
  }
  auto nvfm = std::make_unique<NvfmLibrary>(*std::move(library));
  RETURN_IF_ERROR(nvfm->BindAll());
  return nvfm;
}

}  // namespace switchyard::fabric
