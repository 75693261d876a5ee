// SPDX-License-Identifier: Apache-2.0
#pragma once

// kubelet's device-plugin API, v1beta1: one gRPC server a resource on a unix socket in kubelet's
// folder, registered for ever again, each time under a new name: when kubelet's socket is new, when
// our own is gone, when the device list is not fetched after Register or its stream ends. It
// translates between kubelet and the tenancies and decides nothing. Failures are events and retried
// with backoff; the functions here don't fail. Publish and Status from any thread; Step by one
// thread at a time.
//
// Events: listening, listen_failed, registered, register_failed, kubelet_absent, stream_missing,
// stream_closed, preferred, allocate, allocate_failed, pre_start, pre_start_failed.

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/event.h"
#include "kube/catalogue.h"
#include "kube/contract.h"
#include "tenancy/tenancies.h"

namespace switchyard::kube {

struct DevicePluginsOptions {
  std::string folder = "/var/lib/kubelet/device-plugins";  // kubelet.sock is in it
  absl::Duration register_timeout = absl::Seconds(15);     // kubelet dials back inside, up to 10 s
  absl::Duration stream_timeout = absl::Seconds(5);        // from Register to ListAndWatch
  absl::Duration first_retry = absl::Milliseconds(200);    // doubled up to max_retry
  absl::Duration max_retry = absl::Seconds(30);
};

// Everything borrowed must outlive the DevicePlugins.
struct DevicePluginsParts {
  Clock* clock = nullptr;
  EventSink* events = nullptr;
  const Contract* contract = nullptr;
  tenancy::Tenancies* tenancies = nullptr;
  // Called once a successful Allocate is answered. The answer may still be on its way, or kubelet
  // recording it: wait a moment before a PodResources List. On a gRPC thread; must not block. May
  // be empty.
  absl::AnyInvocable<void() const> after_allocate;
};

class DevicePlugins {
 public:
  struct ResourceStatus {
    std::string resource;
    std::string socket;      // file name; empty while not listening
    bool streaming = false;  // registered, and kubelet reads the device list
    std::string problem;     // why not; empty when streaming
    int devices = 0;
    int healthy = 0;
  };

  DevicePlugins(DevicePluginsOptions options, DevicePluginsParts parts);
  ~DevicePlugins();  // stops
  DevicePlugins(const DevicePlugins&) = delete;
  DevicePlugins& operator=(const DevicePlugins&) = delete;

  // What to serve from now on: sends changed lists to kubelet, and pokes the worker if a resource
  // is new or gone.
  void Publish(std::shared_ptr<const Offer> offer);

  // Removes sockets of a former run, then drives Step from a thread, woken by changes in kubelet's
  // folder. Stop waits for kubelet's calls in flight, `patience` at most, and ends streams and
  // servers; a Register in flight is cancelled. Publish does nothing more then. May be called
  // twice.
  void Start();
  void Stop(absl::Duration patience = absl::ZeroDuration());

  // Looks at every socket, stream and retry once, does what is due, and says how long to wait.
  // Register blocks up to register_timeout. Public for tests; not beside Start.
  absl::Duration Step();

  [[nodiscard]] std::vector<ResourceStatus> Status() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace switchyard::kube
