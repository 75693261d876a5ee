// SPDX-License-Identifier: Apache-2.0
#pragma once

// What can happen in an enforce scenario. Each function returns a step, which does it, waits for
// what must come of it, shows it and judges it. A step's error is no judgement: something that it
// needs did not come at all. Any thread; steps are for the stage's.

#include <functional>
#include <string>

#include "absl/strings/string_view.h"
#include "sim/demo/enforce_stage.h"

namespace switchyard::sim {

using EnforceStep = std::function<Status(EnforceStage&)>;

inline constexpr int kAllGpus = 0;  // in the place of a number of GPUs

// Pods and their processes (pod_steps.cpp). `pods`: a letter each.
EnforceStep Pod(char pod, int gpus);
EnforceStep PodAdopts(char pod, int gpus);  // what SomebodyElseActivates, which is active already
EnforceStep PodIsRefused(char pod, int gpus, std::string because);
EnforceStep End(std::string pods);
EnforceStep EndTwoThatAreNoPair();  // of pods with a GPU each
EnforceStep ProcessHolds(char who);
EnforceStep ProcessEnds(char who);
EnforceStep AwaitRelease();  // until nothing is active but what somebody has

// Fabric Manager (fabric_steps.cpp).
EnforceStep SomebodyElseActivates(int gpus);
EnforceStep FabricManagerDown();
EnforceStep FabricManagerUp();
EnforceStep FabricManagerRestartsWarm();
EnforceStep FabricManagerRestartsCold();

// The agent, kubelet, the node (restart_steps.cpp).
enum class Interrupted { kCarriedOut, kForgotten };
EnforceStep AgentIsKilledActivating(char pod, int gpus, Interrupted what);
EnforceStep AgentStarts();
EnforceStep AgentReports(std::string event);  // since the last thing that happened to it
EnforceStep KubeletLosesItsCheckpoint();
EnforceStep NodeReboots(RebootNumbers numbers, int healthy_fewer);
EnforceStep PodStartsAgain(char pod);
EnforceStep PodIsRejected(char pod, std::string because);

}  // namespace switchyard::sim
