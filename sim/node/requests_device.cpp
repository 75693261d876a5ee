// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "sim/node/requests.h"

namespace switchyard::sim {
namespace {

using Json = nlohmann::json;

Json Done(std::string what) { return {{"done", std::move(what)}}; }

Result<Json> Vanish(SimNode& node, const Json& request) {
  ASSIGN_OR_RETURN(const PciAddress address, DeviceArgument(node, request, "device"));
  RETURN_IF_ERROR(node.sysfs().Vanish(address));
  return Done(absl::StrCat(address.ToString(), " has vanished"));
}

Result<Json> Return(SimNode& node, const Json& request) {
  ASSIGN_OR_RETURN(const PciAddress address, DeviceArgument(node, request, "device"));
  RETURN_IF_ERROR(node.sysfs().Return(address));
  return Done(absl::StrCat(address.ToString(), " is back"));
}

Result<Json> Driver(SimNode& node, const Json& request) {
  ASSIGN_OR_RETURN(const PciAddress address, DeviceArgument(node, request, "device"));
  ASSIGN_OR_RETURN(const std::string driver, TextArgument(request, "driver"));
  RETURN_IF_ERROR(node.sysfs().SetDriver(address, driver == "none" ? "" : driver));
  return Done(absl::StrCat(address.ToString(), " is on driver ", driver));
}

Result<Json> Break(SimNode& node, const Json& request) {
  static const std::map<std::string, Defect> defects = {{"numa", Defect::kNoNumaNode},
                                                        {"resource", Defect::kShortResource},
                                                        {"cdev", Defect::kNoCdev}};
  ASSIGN_OR_RETURN(const PciAddress address, DeviceArgument(node, request, "device"));
  ASSIGN_OR_RETURN(const std::string what, TextArgument(request, "what"));
  const auto it = defects.find(what);
  if (it == defects.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", what, "\" can't be broken; numa, resource and cdev can"));
  }
  RETURN_IF_ERROR(node.sysfs().Break(address, it->second));
  return Done(absl::StrCat(address.ToString(), ": ", what, " is broken"));
}

Result<Json> Repair(SimNode& node, const Json& request) {
  ASSIGN_OR_RETURN(const PciAddress address, DeviceArgument(node, request, "device"));
  RETURN_IF_ERROR(node.sysfs().Repair(address));
  return Done(absl::StrCat(address.ToString(), " is whole again"));
}

Result<Json> AddCompanion(SimNode& node, const Json& request) {
  static const std::map<std::string, Companion> kinds = {{"audio", Companion::kAudio},
                                                         {"usb", Companion::kUsb},
                                                         {"ucsi", Companion::kUcsi},
                                                         {"bridge", Companion::kBridge}};
  ASSIGN_OR_RETURN(const PciAddress address, DeviceArgument(node, request, "device"));
  ASSIGN_OR_RETURN(const std::string what, TextArgument(request, "what"));
  const auto it = kinds.find(what);
  if (it == kinds.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", what, "\" is no companion; audio, usb, ucsi and bridge are"));
  }
  const FunctionSpec spec = CompanionSpec(address, -1, it->second);
  RETURN_IF_ERROR(node.sysfs().Add(spec, address));
  return Done(absl::StrCat(spec.address.ToString(), " (", what, ", on ", spec.driver,
                           ") is in the group of ", address.ToString()));
}

Result<Json> Share(SimNode& node, const Json& request) {
  ASSIGN_OR_RETURN(const PciAddress address, DeviceArgument(node, request, "device"));
  ASSIGN_OR_RETURN(const PciAddress other, DeviceArgument(node, request, "what"));
  RETURN_IF_ERROR(node.sysfs().ShareGroup(address, other));
  return Done(absl::StrCat(other.ToString(), " is in the IOMMU group of ", address.ToString()));
}

Result<Json> Hold(SimNode& node, const Json& request) {
  ASSIGN_OR_RETURN(const PciAddress address, DeviceArgument(node, request, "device"));
  HolderSpec spec;
  ASSIGN_OR_RETURN(spec.command, TextArgument(request, "process"));
  if (request.contains("pod")) {
    ASSIGN_OR_RETURN(spec.pod_uid, TextArgument(request, "pod"));
  }
  ASSIGN_OR_RETURN(const pid_t pid, node.Hold(address, spec));
  Json done = Done(
      absl::StrCat("process ", pid, " (", spec.command, ") has ", address.ToString(), " open"));
  done["pid"] = pid;
  return done;
}

Result<Json> LetGo(SimNode& node, const Json& request) {
  ASSIGN_OR_RETURN(const PciAddress address, DeviceArgument(node, request, "device"));
  ASSIGN_OR_RETURN(const int count, node.EndHolders(address));
  if (count == 0)
    return absl::FailedPreconditionError(
        absl::StrCat(address.ToString(), ": no process of `hold` has it open"));
  return Done(absl::StrCat("nobody has ", address.ToString(), " open; ended: ", count));
}

Result<Json> Reboot(SimNode& node, const Json& request) {
  const bool renumber = !request.contains("sameNumbers");
  RETURN_IF_ERROR(node.Reboot(renumber ? RebootNumbers::kOthers : RebootNumbers::kSame));
  return Done(absl::StrCat(
      "the node was restarted: ",
      renumber ? "groups and vfio numbers have changed, "
               : "groups and vfio numbers are as before, ",
      "no partition is active; restart the agent, then `switchyard-sim pod readmit NAME` admits a "
      "pod again"));
}

RequestHandler Map(ModuleMapFile what, const char* done) {
  return [what, done](SimNode& node, const Json&) -> Result<Json> {
    RETURN_IF_ERROR(node.SetModuleMap(what));
    return Done(absl::StrCat(node.paths().module_map(), " ", done));
  };
}

Result<Json> Advance(SimNode& node, const Json& request) {
  // A day at most, in milliseconds: enough for every grace time there is.
  ASSIGN_OR_RETURN(const std::int64_t ms, IntArgument(request, "ms", 0, 86'400'000));
  RETURN_IF_ERROR(node.AdvanceClock(absl::Milliseconds(ms)));
  return Done(absl::StrCat("kubelet's clock is ", absl::FormatDuration(absl::Milliseconds(ms)),
                           " further"));
}

}  // namespace

void AddDeviceRequests(RequestTable& table) {
  table["device.vanish"] = Vanish;
  table["device.return"] = Return;
  table["device.driver"] = Driver;
  table["device.break"] = Break;
  table["device.repair"] = Repair;
  table["device.companion"] = AddCompanion;
  table["device.share"] = Share;
  table["device.hold"] = Hold;
  table["device.let-go"] = LetGo;
  table["reboot"] = Reboot;
  table["map.good"] = Map(ModuleMapFile::kGood, "is as it should be");
  table["map.missing"] = Map(ModuleMapFile::kMissing, "is gone");
  table["map.malformed"] = Map(ModuleMapFile::kMalformed, "is cut in the middle");
  table["clock.advance"] = Advance;
}

}  // namespace switchyard::sim
