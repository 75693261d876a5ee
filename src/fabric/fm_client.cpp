// SPDX-License-Identifier: Apache-2.0
#include "fabric/fm_client.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "fabric/nvfm_codes.h"

namespace switchyard::fabric {
namespace {

// "-9 (CONNECTION_NOT_VALID) from fmConnect at 127.0.0.1:6666".
std::string Failed(absl::string_view function, nvfm::Return code, const FabricAddress& address) {
  return absl::StrCat(nvfm::CodeToString(code), " from ", function, " at ", address.ToString());
}

// What every call's codes have in common.
Status CallError(absl::string_view function, nvfm::Return code, const FabricAddress& address) {
  const std::string failed = Failed(function, code, address);
  switch (nvfm::ReadingOf(code)) {
    case nvfm::Reading::kRetry:
      return absl::UnavailableError(
          absl::StrCat(failed,
                       ": Fabric Manager is starting or busy; it is asked again by itself. If this "
                       "lasts for minutes, see Fabric Manager's log"));
    case nvfm::Reading::kReconnect:
      return absl::UnavailableError(absl::StrCat(
          failed,
          ": Fabric Manager is not reachable; check that nvidia-fabricmanager runs and "
          "listens there (FM_CMD_BIND_INTERFACE, FM_CMD_PORT_NUMBER or "
          "FM_CMD_UNIX_SOCKET_PATH in fabricmanager.cfg) and that fabric.address says so"));
    case nvfm::Reading::kWrongMode:
      return absl::FailedPreconditionError(
          absl::StrCat(failed,
                       ": Fabric Manager is not in shared NVSwitch mode; set FABRIC_MODE=1 in "
                       "fabricmanager.cfg and restart it"));
    case nvfm::Reading::kAbi:
      return absl::UnimplementedError(
          absl::StrCat(failed,
                       ": this Fabric Manager does not know the version of a structure; use the "
                       "libnvfm that belongs to it"));
    case nvfm::Reading::kFabricFault:
      return absl::InternalError(absl::StrCat(
          failed, ": a fault of the NVLink fabric; see Fabric Manager's log for the device"));
    case nvfm::Reading::kSuccess:
    case nvfm::Reading::kOther:
      break;
  }
  return absl::InternalError(absl::StrCat(
      failed, ": not expected here; see Fabric Manager's log and report this with its version"));
}

Status ListError(nvfm::Return code, const FabricAddress& address) {
  const absl::string_view function = "fmGetSupportedFabricPartitions";
  if (code != nvfm::kUninitialized) return CallError(function, code, address);
  // The library is initialised, so this is the other meaning: connecting to one of FM's internal
  // endpoints succeeds, and the first call on it does not.
  return absl::FailedPreconditionError(absl::StrCat(
      Failed(function, code, address),
      address.is_unix
          ? ": this is Fabric Manager's internal socket (UNIX_SOCKET_PATH); set fabric.address to "
            "the one that FM_CMD_UNIX_SOCKET_PATH in fabricmanager.cfg names"
          : ": this is an internal port of Fabric Manager; set fabric.address to the one that "
            "FM_CMD_PORT_NUMBER in fabricmanager.cfg names (6666 by default)"));
}

// Both versions begin alike; the caller sets `version` and what only version 2 has.
template <typename Params>
Params MakeParams(const FabricAddress& address, absl::Duration timeout) {
  static_assert(sizeof(Params::address) == nvfm::kAddressBytes);
  Params params{};
  // FabricAddress::Parse keeps it shorter than the buffer; the rest stays zero.
  std::memcpy(params.address, address.text.data(),
              std::min(address.text.size(), sizeof(params.address) - 1));
  const absl::Duration bounded = std::clamp(timeout, absl::Milliseconds(1), absl::Hours(1));
  params.timeout_ms = static_cast<std::uint32_t>(
      absl::ToInt64Milliseconds(absl::Ceil(bounded, absl::Milliseconds(1))));
  params.is_unix_socket = address.is_unix ? 1 : 0;
  return params;
}

}  // namespace

FmClient::~FmClient() {
  if (initialized_) (void)api_->Shutdown();
}

Result<FabricList> FmClient::ReadPartitions(const FabricAddress& address,
                                            absl::Duration connect_timeout) {
  RETURN_IF_ERROR(Initialize());
  ASSIGN_OR_RETURN(const nvfm::Handle handle, Connect(address, connect_timeout));
  Result<FabricList> list = List(handle, address);
  (void)api_->Disconnect(handle);  // nothing is left to do about a failure
  return list;
}

Status FmClient::Initialize() {
  if (initialized_) return OkStatus();
  const nvfm::Return code = api_->Init();
  if (code != nvfm::kSuccess) {
    return absl::InternalError(
        absl::StrCat(nvfm::CodeToString(code),
                     " from fmLibInit: libnvfm can't be used; reinstall the one that belongs to "
                     "this node's Fabric Manager"));
  }
  initialized_ = true;
  return OkStatus();
}

Result<nvfm::Handle> FmClient::Connect(const FabricAddress& address, absl::Duration timeout) {
  if (address.text.size() >= nvfm::kAddressBytes) {
    return absl::InvalidArgumentError("Fabric Manager's address is longer than 255 bytes");
  }
  nvfm::Handle handle = nullptr;
  auto v2 = MakeParams<nvfm::ConnectParamsV2>(address, timeout);
  v2.version = nvfm::kConnectParamsV2Version;
  v2.address_type = address.is_unix ? nvfm::AddressType::kUnix : nvfm::AddressType::kInet;
  nvfm::Return code = api_->Connect(&v2, &handle);
  if (code == nvfm::kVersionMismatch) {  // before release 580, more or less
    auto v1 = MakeParams<nvfm::ConnectParamsV1>(address, timeout);
    v1.version = nvfm::kConnectParamsV1Version;
    handle = nullptr;
    code = api_->Connect(&v1, &handle);
  }
  if (code != nvfm::kSuccess) return CallError("fmConnect", code, address);
  return handle;
}

Result<FabricList> FmClient::List(nvfm::Handle handle, const FabricAddress& address) {
  const auto list = std::make_unique<nvfm::PartitionList>();  // 132 kB, zeroed
  list->version = nvfm::kPartitionListVersion;
  const nvfm::Return code = api_->GetSupportedFabricPartitions(handle, list.get());
  if (code != nvfm::kSuccess) return ListError(code, address);
  return ConvertList(*list);
}

}  // namespace switchyard::fabric
