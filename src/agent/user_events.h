// SPDX-License-Identifier: Apache-2.0
#pragma once

// Kubernetes events from the agent's events, in a pod that may write them: joins the parts of
// kube/api to the configuration.

#include <memory>
#include <string>
#include <vector>

#include "agent/config.h"
#include "agent/metrics.h"
#include "base/clock.h"
#include "base/event.h"
#include "base/status.h"
#include "kube/api/client.h"
#include "kube/api/event_publisher.h"
#include "kube/api/in_cluster.h"
#include "kube/api/transport.h"

namespace switchyard::agent {

class UserEvents {
 public:
  UserEvents(const kube::api::InCluster& cluster, const std::string& node, EventSink& next,
             Clock& clock);

  EventSink& sink() { return publisher_; }
  [[nodiscard]] kube::api::EventPublisher::Stats stats() const { return publisher_.stats(); }

 private:
  const std::unique_ptr<kube::api::Transport> transport_;
  kube::api::Client client_;
  kube::api::EventPublisher publisher_;
};

// The API server that this process was told of by its environment and paths.serviceAccount; errors
// as kube::api::FindInCluster.
[[nodiscard]] Result<kube::api::InCluster> FindApiServer(const Config& config);

// Null where there is no API server, which is no error, or not all of it is known, which `next` is
// told. `next` and `clock` must outlive what is made.
[[nodiscard]] std::unique_ptr<UserEvents> MakeUserEvents(const Config& config, EventSink& next,
                                                         Clock& clock);

[[nodiscard]] std::vector<Gauge> MakeUserEventGauges(const kube::api::EventPublisher::Stats& stats);

}  // namespace switchyard::agent
