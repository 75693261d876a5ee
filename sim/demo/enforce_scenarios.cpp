// SPDX-License-Identifier: Apache-2.0
#include "sim/demo/enforce_scenarios.h"

namespace switchyard::sim {
namespace {

std::vector<EnforceScenario> OfPods(const Board& board) {
  std::vector<EnforceStep> no_pair;
  no_pair.reserve(board.devices.size() + 2);
  char pod = 'a';
  for (size_t i = 0; i < board.devices.size(); ++i) no_pair.push_back(Pod(pod++, 1));
  no_pair.push_back(EndTwoThatAreNoPair());
  no_pair.push_back(PodIsRefused('z', 2, "are no partition"));

  return {
      {"pods of 1, 1, 2 and 4 GPUs",
       "each one's partition is activated in Allocate, and no other",
       {Pod('a', 1), Pod('b', 1), Pod('c', 2), Pod('d', 4)}},
      {"a pod of all GPUs when four others have just ended",
       "their partitions give way at once: by kubelet and by the processes nobody has them",
       {Pod('a', 1), Pod('b', 1), Pod('c', 2), Pod('d', 4), End("abcd"), Pod('e', kAllGpus)}},
      {"a deleted pod's partition is deactivated",
       "once neither kubelet nor a process has had it for tenancy.grace, here 1 s; kubelet is "
       "asked "
       "every 10 s, and its word on a grant counts from 10 s after it",
       {Pod('a', 2), Pod('b', 4), End("a"), AwaitRelease()},
       {{"tenancy.grace", "1s"}}},
      {"a pod of 2 GPUs when the two free ones are no pair",
       "kubelet hands out what is left; Allocate refuses it, and the pod's status says why",
       no_pair},
      {"a GPU that a process has open is given to nobody, and its partition stays",
       "the pod was deleted by force, and its virtual machine runs on",
       {Pod('a', 2), ProcessHolds('a'), End("a"), PodIsRefused('b', kAllGpus, "still held open"),
        ProcessEnds('a'), Pod('c', kAllGpus)},
       {{"allocate.wait", "1s"}}},
      {"kubelet loses its checkpoint and hands out the GPUs of a running pod",
       "it does not know them any more; the pod's process does",
       {Pod('a', 2), ProcessHolds('a'), KubeletLosesItsCheckpoint(),
        PodIsRefused('b', kAllGpus, "still held open")},
       {{"allocate.wait", "1s"}}},
  };
}

std::vector<EnforceScenario> OfFabricManager() {
  return {
      {"a partition that somebody else left active is adopted",
       "it is exactly what is asked for, and not activated again",
       {SomebodyElseActivates(4), PodAdopts('a', 4)}},
      {"one that is in the way is deactivated, but not while a process uses it",
       "kubelet knows nobody who has its GPUs, and neither does the journal",
       {SomebodyElseActivates(2), ProcessHolds(kSomebodyElse),
        PodIsRefused('a', kAllGpus, "still held open"), ProcessEnds(kSomebodyElse),
        Pod('b', kAllGpus)},
       {{"allocate.wait", "1s"}}},
      {"Fabric Manager is down",
       "pods that run keep their GPUs; the others are Unhealthy, so that pods wait instead of "
       "failing one after the other",
       {Pod('a', 2), FabricManagerDown(), FabricManagerUp(), Pod('b', 4)}},
      {"Fabric Manager restarts warm",
       "it has forgotten what is active, guests still have their NVLink; it waits 60 s for the "
       "list",
       {Pod('a', 2), SomebodyElseActivates(4), FabricManagerRestartsWarm(), Pod('b', 1)},
       {{"fabric.restart", "warm"}}},
      {"Fabric Manager restarts cold",
       "every partition is gone: a running guest is left alone, nobody gets its GPUs, and the "
       "fabric is clean when it has ended",
       {Pod('a', 2), ProcessHolds('a'), FabricManagerRestartsCold(), Pod('b', 2), End("ab"),
        PodIsRefused('c', kAllGpus, "still held open"), ProcessEnds('a'), Pod('d', kAllGpus),
        AgentReports("fabric_clean")},
       {{"allocate.wait", "1s"}, {"fabric.restart", "cold"}}},
  };
}

std::vector<EnforceScenario> OfRestarts() {
  return {
      {"the agent is killed while Fabric Manager activates, which it does all the same",
       "nobody was given that partition: it gives way to the next pod",
       {Pod('a', 2), AgentIsKilledActivating('b', 4, Interrupted::kCarriedOut), AgentStarts(),
        End("a"), Pod('c', kAllGpus)}},
      {"the agent is killed while Fabric Manager activates, which it then never does",
       "what was begun is in the journal; it is forgotten when it can't happen any more, "
       "fabric.timeout after the start, here 2 s",
       {Pod('a', 2), AgentIsKilledActivating('b', 4, Interrupted::kForgotten), AgentStarts(),
        AgentReports("released"), End("a"), Pod('c', kAllGpus)},
       {{"fabric.timeout", "2s"}}},
      {"the node reboots",
       "kubelet starts the pod from its checkpoint, without Allocate; before its container starts "
       "the partition is activated from the journal",
       {Pod('a', 2), NodeReboots(RebootNumbers::kSame, 0), PodStartsAgain('a'), Pod('b', 4)}},
      {"the node reboots, and its devices have other numbers",
       "kubelet would give the container the nodes of before, which are other GPUs now",
       {Pod('a', 2), NodeReboots(RebootNumbers::kOthers, 2), PodIsRejected('a', "unhealthy")}},
  };
}

}  // namespace

std::vector<EnforceScenario> EnforceScenarios(const Board& board) {
  std::vector<EnforceScenario> all;
  for (auto& part : {OfPods(board), OfFabricManager(), OfRestarts()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace switchyard::sim
