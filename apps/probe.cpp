// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/str_cat.h"
#include "agent/config.h"
#include "agent/process_name.h"
#include "apps/command.h"
#include "apps/container.h"
#include "apps/load_config.h"
#include "apps/operator_client.h"
#include "apps/output.h"
#include "apps/unix_listener.h"
#include "base/lock_owner.h"

namespace switchyard::apps {
namespace {

// Below kubelet's own limit for a probe, which has no message.
constexpr absl::Duration kTimeout = absl::Seconds(3);

Result<std::string> Ask(const agent::Config& config) {
  ASSIGN_OR_RETURN(const Container container, Container::Own());
  const std::string lock = agent::OwnerLockPath(config);
  if (container.HasNamed(agent::kWaitingName, lock)) {
    const Result<LockOwner> owner = ReadLockOwner(lock);
    return absl::StrCat("standing by: the node's agent is ",
                        owner.ok() ? owner->Describe() : "another process");
  }
  const std::string& socket = config.paths.socket;
  if (!container.Has(ListenerPid(socket))) {
    return absl::UnavailableError(
        absl::StrCat("no agent of this container listens on ", socket,
                     ": it is starting, has ended, or is another container's; its log says more"));
  }
  const OperatorClient client{socket, kTimeout};
  ASSIGN_OR_RETURN(std::string body, client.Get("/readyz"));
  while (!body.empty() && body.back() == '\n') body.pop_back();
  return body;
}

int Run(const Arguments& arguments) {
  const Result<agent::LoadedConfig> loaded = LoadConfigOf(arguments);
  if (!loaded.ok()) return Fail(loaded.status());
  const Result<std::string> answer = Ask(loaded->config);
  if (!answer.ok()) return Fail(answer.status());
  Print(*answer);
  return kExitOk;
}

}  // namespace

Command ProbeCommand() {
  Command command;
  command.name = "probe";
  command.summary = "Readiness probe of a pod: whether this container's agent does its part";
  command.details =
      "Examples:\n"
      "  switchyard probe --config /etc/switchyard/config.yaml\n"
      "  kubectl -n switchyard exec ds/switchyard -- /usr/bin/switchyard probe\n"
      "Exit code 0 if the agent of this container is ready, as /readyz says it, or stands by\n"
      "(--wait-lock) for the one that holds the node: a DaemonSet with maxSurge ends the old pod\n"
      "only once the new one is ready. Exit code 1 otherwise, with the reason.";
  command.has_output = false;
  command.takes_config = true;
  command.run = Run;
  return command;
}

}  // namespace switchyard::apps
