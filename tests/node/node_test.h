// SPDX-License-Identifier: Apache-2.0
#pragma once

// The whole binary on a simulated node, one node a test: a folder below /tmp, network and mount
// namespaces of the test's own when it runs as root (uevents, loopback). Waits for events only; a
// wait that runs out fails the test and prints the agent's log.

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "sim/node/sim_node.h"
#include "sim/process/process.h"

namespace switchyard::sim {

class NodeTest : public ::testing::Test {
 protected:
  static constexpr absl::Duration kPatience = absl::Seconds(60);

  void SetUp() override;
  void TearDown() override;

  // The node, with these options but for the folder.
  void MakeNode(SimNodeOptions options = {});
  // The agent, with these changes to the node's configuration. `wait`: until kubelet reads the list
  // of every resource it registers.
  void StartAgent(const YamlOverrides& overrides = {}, bool wait = true);

  bool WaitForKubelet(const std::function<bool()>& done);
  // The line, or a failure.
  std::string WaitForLog(const std::string& text);
  // The only GPU resource; NVSwitches are another.
  std::string Resource() const;
  ResourceReport Report() const;

  PodStatus AddPod(const std::string& name, int gpus);
  // Of a pod's only container, through its device ids (kubevirt: PCI addresses).
  std::set<int> Modules(const PodStatus& pod) const;
  std::optional<int> PartitionOf(const std::set<int>& modules) const;

  // From the operator socket: body of a GET, status first ("200 ...").
  std::string Get(const std::string& target) const;

  // A finished run of the binary: exit code and output.
  struct Finished {
    int code = -1;
    std::string output;
  };
  Finished RunBinary(std::vector<std::string> arguments) const;

  std::string folder_;
  bool uevents_ = false;  // the agent hears of changes at once
  std::unique_ptr<SimNode> node_;
  std::unique_ptr<Process> agent_;
};

}  // namespace switchyard::sim
