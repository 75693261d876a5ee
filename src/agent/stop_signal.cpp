// SPDX-License-Identifier: Apache-2.0
#include "agent/stop_signal.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace switchyard::agent {

Result<std::unique_ptr<StopSignal>> StopSignal::Make() {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGTERM);
  ::sigaddset(&signals, SIGINT);
  UniqueFd fd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.valid()) return ErrnoError(errno, "signalfd");
  auto stop = std::unique_ptr<StopSignal>(new StopSignal(std::move(fd)));
  if (!stop->watcher_.watches())
    return absl::ResourceExhaustedError("no thread can be started to wait for a stop signal");
  return stop;
}

StopSignal::StopSignal(UniqueFd fd)
    : fd_(std::move(fd)), watcher_("stop-signal", fd_.get(), [this] {
        signalfd_siginfo signal;
        if (::read(fd_.get(), &signal, sizeof(signal)) != sizeof(signal)) return;
        came_ = true;
        wakeup_.Notify();
      }) {}

}  // namespace switchyard::agent
