// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "apps/doctor.h"
#include "apps/unix_listener.h"
#include "base/lock_owner.h"

namespace switchyard::apps {
namespace {

void CheckState(const std::string& folder, Findings& findings) {
  std::string existing = folder;
  while (::access(existing.c_str(), F_OK) != 0 && errno == ENOENT && existing.size() > 1) {
    const size_t slash = existing.rfind('/');
    existing = slash == 0 ? "/" : existing.substr(0, slash);
  }
  if (::access(existing.c_str(), W_OK | X_OK) == 0) {
    findings.push_back({"state", Verdict::kOk,
                        absl::StrCat(folder, existing == folder ? " is writable" : " can be made"),
                        ""});
    return;
  }
  findings.push_back({"state", Verdict::kError, absl::StrCat(existing, ": ", std::strerror(errno)),
                      "run this as root; in a pod, mount a writable folder at paths.state"});
}

// The PID in the owner's lock file, if such a process lives. Looks only: taking the lock, even for
// a moment, could make a starting agent give up.
int LockHolder(const agent::Config& config) {
  const Result<LockOwner> owner = ReadLockOwner(agent::OwnerLockPath(config));
  if (!owner.ok()) return 0;
  return ::access(absl::StrCat("/proc/", owner->pid).c_str(), F_OK) == 0 ? owner->pid : 0;
}

void CheckRunning(const agent::Config& config, Findings& findings) {
  const std::string& socket = config.paths.socket;
  switch (ProbeSocket(socket)) {
    case Listener::kListens:
      findings.push_back({"agent", Verdict::kOk, absl::StrCat("an agent listens on ", socket), ""});
      return;
    case Listener::kNotAllowed:
      findings.push_back({"agent", Verdict::kWarning, absl::StrCat(socket, ": permission denied"),
                          "run this as root"});
      return;
    case Listener::kNone:
      break;
  }
  if (const int pid = LockHolder(config); pid != 0) {
    findings.push_back({"agent", Verdict::kWarning,
                        absl::StrCat("process ", pid, " wrote ", agent::OwnerLockPath(config),
                                     ", but no agent listens on ", socket),
                        "if it is an agent, it uses another paths.socket or is about to start or "
                        "stop"});
    return;
  }
  findings.push_back(
      {"agent", Verdict::kWarning, "no agent is running", "start one with `switchyard agent`"});
}

}  // namespace

void CheckAgent(const agent::Config& config, Findings& findings) {
  CheckState(config.paths.state, findings);
  CheckRunning(config, findings);
  const std::string address = config.http_address.ToString();
  if (config.http_address.IsLoopback()) {
    findings.push_back({"metrics", Verdict::kOk, absl::StrCat(address, " is loopback"), ""});
  } else {
    findings.push_back({"metrics", Verdict::kWarning,
                        absl::StrCat(address,
                                     " can be reached from other machines, without "
                                     "authentication"),
                        "set http.address to 127.0.0.1:9417, or see that the network keeps "
                        "strangers out"});
  }
}

}  // namespace switchyard::apps
