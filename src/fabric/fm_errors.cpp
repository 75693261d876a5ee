// SPDX-License-Identifier: Apache-2.0
#include "fabric/fm_errors.h"

#include "absl/strings/str_cat.h"
#include "fabric/fabric_answer.h"
#include "fabric/nvfm_codes.h"

namespace switchyard::fabric {
namespace {

Status Plain(absl::string_view function, nvfm::Return code, const FabricAddress& address) {
  const std::string failed = Answered(function, code, address);
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

}  // namespace

std::string Answered(absl::string_view function, nvfm::Return code, const FabricAddress& address) {
  return absl::StrCat(nvfm::CodeToString(code), " from ", function, " at ", address.ToString());
}

Status CallError(absl::string_view function, nvfm::Return code, const FabricAddress& address) {
  return WithFabricAnswer(Plain(function, code, address), {std::string(function), code});
}

Status ListError(nvfm::Return code, const FabricAddress& address) {
  if (code != nvfm::kUninitialized) return CallError(kListFunction, code, address);
  // The library is initialised, so this is the other meaning: connecting to one of FM's internal
  // endpoints succeeds, and the first call on it does not.
  return WithFabricAnswer(
      absl::FailedPreconditionError(absl::StrCat(
          Answered(kListFunction, code, address),
          address.is_unix
              ? ": this is Fabric Manager's internal socket (UNIX_SOCKET_PATH); set fabric.address "
                "to the one that FM_CMD_UNIX_SOCKET_PATH in fabricmanager.cfg names"
              : ": this is an internal port of Fabric Manager; set fabric.address to the one that "
                "FM_CMD_PORT_NUMBER in fabricmanager.cfg names (6666 by default)")),
      {std::string(kListFunction), code});
}

}  // namespace switchyard::fabric
