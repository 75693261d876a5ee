// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "absl/time/time.h"
#include "sim/node/cli.h"

namespace switchyard::sim {
namespace {

using Json = nlohmann::json;

struct Fault {
  const char* name;
  const char* command;
  const char* help;
  const char* key = nullptr;  // of its argument in the request
  const char* argument = "";  // its name on the command line
  bool number = false;
};

constexpr Fault kDeviceFaults[] = {
    {"vanish", "device.vanish", "Falls off the bus"},
    {"return", "device.return", "Is back, on the driver it had"},
    {"driver", "device.driver", "Changes to that driver, or to none", "driver", "NAME"},
    {"break", "device.break",
     "numa: no numa_node file; resource: a line of two fields; cdev: no "
     "/dev/vfio/devices node",
     "what", "WHAT"},
    {"repair", "device.repair", "Ends every break"},
    {"companion", "device.companion",
     "Another function in its IOMMU group, on a host driver: "
     "audio, usb, ucsi or bridge",
     "what", "KIND"},
    {"share", "device.share", "That device moves into its IOMMU group", "what", "DEVICE"},
    {"hold", "device.hold", "A process of that name has it open, as a virtual machine's monitor",
     "process", "COMMAND"},
    {"let-go", "device.let-go", "Ends every process of hold that has it open"},
};

constexpr Fault kFmFaults[] = {
    {"down", "fm.down", "Fabric Manager can't be reached; what was active stays active"},
    {"up", "fm.up", "Fabric Manager is back, as it was"},
    {"hang", "fm.hang",
     "It never answers that call: connect, list, activate, deactivate or set-activated", "call",
     "CALL"},
    {"latency", "fm.latency", "It answers after that time", "ms", "MS", true},
    {"slow", "fm.slow", "Changes take that long, and are done even if the caller has given up",
     "ms", "MS", true},
    {"crash", "fm.crash",
     "libnvfm kills the process that asks for the list, or that has just changed something"},
    {"no-effect", "fm.no-effect", "Changes are answered with success, and nothing happens"},
    {"late", "fm.late", "Changes are left unanswered, and done once the caller has given up"},
    {"table", "fm.table",
     "A table that breaks a rule: 65-partitions, 17-gpus, repeated-id, "
     "empty-partition, repeated-gpu",
     "rule", "RULE"},
    {"degrade", "fm.degrade",
     "That module is out of order: up to A100 its partitions go from the "
     "list",
     "module", "MODULE", true},
    {"old-version", "fm.old-version", "It refuses connect parameters of version 2"},
    {"none", "fm.none", "Ends all of these but down and restart"},
};

constexpr Fault kKubeletFaults[] = {
    {"restart", "kubelet.restart", "Stop and start: every socket in its folder is removed"},
    {"stop", "kubelet.stop", "It ends"},
    {"start", "kubelet.start", "It starts"},
    {"lose-checkpoint", "kubelet.lose-checkpoint",
     "A restart without its checkpoint: containers run on, and it knows none of their devices"},
    {"fail-register", "kubelet.fail-register", "It refuses the next Register calls", "count", "N",
     true},
    {"withhold-streams", "kubelet.withhold-streams",
     "It opens no ListAndWatch after the next "
     "Register calls",
     "count", "N", true},
    {"hold-dial-back", "kubelet.hold-dial-back", "Register waits before it dials back"},
    {"dial-back", "kubelet.dial-back", "Ends hold-dial-back"},
};

constexpr Fault kMapFaults[] = {
    {"missing", "map.missing", "The module map file is removed"},
    {"malformed", "map.malformed", "The module map file is cut in the middle"},
    {"good", "map.good", "The module map file is as it should be"},
};

constexpr char kFaultExamples[] =
    "Examples (DEVICE is a PCI address or a module id):\n"
    "  switchyard-sim fault device 3 vanish\n"
    "  switchyard-sim fault fm down\n"
    "  switchyard-sim fault kubelet restart\n"
    "  switchyard-sim fault map malformed\n"
    "  switchyard-sim fault reboot";
constexpr char kDeviceExamples[] =
    "Examples (DEVICE is a PCI address or a module id):\n"
    "  switchyard-sim fault device 3 vanish\n"
    "  switchyard-sim fault device 0000:0f:00.0 driver nvidia\n"
    "  switchyard-sim fault device 3 companion audio\n"
    "  switchyard-sim fault device 3 share 1";
constexpr char kFmExamples[] =
    "Examples:\n"
    "  switchyard-sim fault fm down\n"
    "  switchyard-sim fault fm restart --warm\n"
    "  switchyard-sim fault fm hang list\n"
    "  switchyard-sim fault fm code 8\n"
    "  switchyard-sim fault fm no-effect\n"
    "  switchyard-sim fault fm table repeated-id\n"
    "  switchyard-sim fault fm none";
constexpr char kKubeletExamples[] =
    "Examples:\n"
    "  switchyard-sim fault kubelet restart\n"
    "  switchyard-sim fault kubelet fail-register 3";
constexpr char kMapExamples[] =
    "Examples:\n"
    "  switchyard-sim fault map malformed\n"
    "  switchyard-sim fault map good";
constexpr char kClockExample[] =
    "Example, for what kubelet removes after 5 minutes:\n"
    "  switchyard-sim clock advance 6m";

// One subcommand for each; `device`, if not null, is the device it is about.
template <size_t N>
void AddFaults(CLI::App& parent, const Fault (&faults)[N], std::shared_ptr<std::string> device,
               CommandLine& line) {
  parent.require_subcommand(1);
  for (const Fault& fault : faults) {
    auto* command = parent.add_subcommand(fault.name, fault.help)->fallthrough();
    auto text = std::make_shared<std::string>();
    auto number = std::make_shared<std::int64_t>(0);
    if (fault.key != nullptr && fault.number) {
      command->add_option(fault.argument, *number)->required();
    } else if (fault.key != nullptr) {
      command->add_option(fault.argument, *text)->required();
    }
    command->callback([&fault, device, text, number, &line] {
      Json request = {{"command", fault.command}};
      if (device != nullptr) request["device"] = *device;
      if (fault.key != nullptr && fault.number) {
        request[fault.key] = *number;
      } else if (fault.key != nullptr) {
        request[fault.key] = *text;
      }
      line.Ask(request);
    });
  }
}

void AddClock(CLI::App& app, CommandLine& line) {
  auto* clock = app.add_subcommand("clock", "Kubelet's clock")->require_subcommand(1);
  auto* advance = clock->fallthrough()->add_subcommand("advance", "Set it forward");
  clock->footer(kClockExample);
  auto by = std::make_shared<std::string>();
  advance->fallthrough()->add_option("TIME", *by, "How far: 90s, 5m, 1h")->required();
  advance->footer(kClockExample);
  advance->callback([by, &line] {
    absl::Duration duration;
    if (!absl::ParseDuration(*by, &duration)) {
      throw CLI::ValidationError("TIME", "must be a time such as 90s, 5m or 1h");
    }
    line.Ask({{"command", "clock.advance"}, {"ms", absl::ToInt64Milliseconds(duration)}});
  });
}

}  // namespace

void AddFaultCommands(CLI::App& app, CommandLine& line) {
  auto* fault = app.add_subcommand("fault", "Break something, or make it whole again");
  fault->require_subcommand(1);
  fault->footer(kFaultExamples);

  auto* device = fault->add_subcommand("device", "A GPU or another PCI function");
  auto which = std::make_shared<std::string>();
  device->footer(kDeviceExamples);
  device->add_option("DEVICE", *which, "PCI address or module id")->required();
  AddFaults(*device->fallthrough(), kDeviceFaults, which, line);
  auto* fm = fault->add_subcommand("fm", "Fabric Manager and its library");
  fm->footer(kFmExamples);
  AddFaults(*fm->fallthrough(), kFmFaults, nullptr, line);
  AddFabricManagerCalls(*fm, line);
  auto* kubelet = fault->add_subcommand("kubelet", "kubelet");
  kubelet->footer(kKubeletExamples);
  AddFaults(*kubelet->fallthrough(), kKubeletFaults, nullptr, line);
  auto* map = fault->add_subcommand("map", "The module map file");
  map->footer(kMapExamples);
  AddFaults(*map->fallthrough(), kMapFaults, nullptr, line);
  auto* reboot =
      fault->add_subcommand("reboot", "The node restarts: group and vfio numbers change");
  auto same = std::make_shared<bool>(false);
  reboot->fallthrough()->add_flag("--same-numbers", *same, "They stay as they are");
  reboot->callback([same, &line] {
    Json request = {{"command", "reboot"}};
    if (*same) request["sameNumbers"] = true;
    line.Ask(request);
  });
  fault->fallthrough();
  AddClock(app, line);
}

}  // namespace switchyard::sim
