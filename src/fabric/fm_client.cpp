// SPDX-License-Identifier: Apache-2.0
#include "fabric/fm_client.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "fabric/fabric_answer.h"
#include "fabric/fm_errors.h"
#include "fabric/nvfm_codes.h"

namespace switchyard::fabric {
namespace {

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

Result<FabricList> FmClient::Change(const FabricAddress& address, absl::Duration connect_timeout,
                                    const FabricChange& change) {
  RETURN_IF_ERROR(change.Validate());
  if (!api_->Has(change.function())) {
    return absl::UnimplementedError(absl::StrCat(
        "libnvfm has no function ", change.function(),
        ": it is too old for fabric.mode enforce; install the one that belongs to this "
        "node's Fabric Manager"));
  }
  RETURN_IF_ERROR(Initialize());
  ASSIGN_OR_RETURN(const nvfm::Handle handle, Connect(address, connect_timeout));
  const nvfm::Return code = Call(handle, change);
  Result<FabricList> list = DecidedByList(code)
                                ? Settle(change, code, List(handle, address), address)
                                : CallError(change.function(), code, address);
  (void)api_->Disconnect(handle);
  return list;
}

nvfm::Return FmClient::Call(nvfm::Handle handle, const FabricChange& change) {
  nvfm::ActivatedList list{};
  for (const int id : change.partitions) {
    list.ids[list.num_partitions++] = static_cast<std::uint32_t>(id);
  }
  switch (change.kind) {
    case FabricChange::Kind::kActivate:
      return api_->ActivateFabricPartition(handle, list.ids[0]);
    case FabricChange::Kind::kDeactivate:
      return api_->DeactivateFabricPartition(handle, list.ids[0]);
    case FabricChange::Kind::kSetActivated:
      break;
  }
  list.version = nvfm::kActivatedListVersion;
  return api_->SetActivatedFabricPartitions(handle, &list);
}

Status FmClient::Initialize() {
  if (initialized_) return OkStatus();
  const nvfm::Return code = api_->Init();
  if (code != nvfm::kSuccess) {
    return WithFabricAnswer(
        absl::InternalError(
            absl::StrCat(nvfm::CodeToString(code),
                         " from fmLibInit: libnvfm can't be used; reinstall the one that belongs "
                         "to this node's Fabric Manager")),
        {"fmLibInit", code});
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
