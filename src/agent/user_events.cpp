// SPDX-License-Identifier: Apache-2.0
#include "agent/user_events.h"

#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "kube/api/https.h"

namespace switchyard::agent {

UserEvents::UserEvents(const kube::api::InCluster& cluster, const std::string& node,
                       EventSink& next, Clock& clock)
    : transport_(kube::api::MakeHttps(cluster)),
      client_(cluster, *transport_),
      publisher_(node, client_, next, clock) {
  publisher_.Start();
}

Result<kube::api::InCluster> FindApiServer(const Config& config) {
  return kube::api::FindInCluster(std::getenv("KUBERNETES_SERVICE_HOST"),
                                  std::getenv("KUBERNETES_SERVICE_PORT"),
                                  config.paths.service_account);
}

std::unique_ptr<UserEvents> MakeUserEvents(const Config& config, EventSink& next, Clock& clock) {
  const Result<kube::api::InCluster> cluster = FindApiServer(config);
  if (absl::IsNotFound(cluster.status())) return nullptr;
  std::string problem(cluster.status().message());
  if (cluster.ok() && config.node_name.empty())
    problem = "kubernetes.nodeName is not set (environment NODE_NAME)";
  if (problem.empty()) return std::make_unique<UserEvents>(*cluster, config.node_name, next, clock);
  next.Report({"kubernetes_events_failed",
               Severity::kWarning,
               absl::StrCat("there will be no Kubernetes events: ", problem),
               {}});
  return nullptr;
}

std::vector<Gauge> MakeUserEventGauges(const kube::api::EventPublisher::Stats& stats) {
  std::vector<Gauge> gauges = {
      {"switchyard_kubernetes_events_total",
       "Kubernetes events and counts of them: sent, or dropped because the API server took none.",
       {{{{"outcome", "sent"}}, static_cast<double>(stats.sent)},
        {{{"outcome", "dropped"}}, static_cast<double>(stats.dropped)}},
       /*counter=*/true}};
  if (stats.up) {
    gauges.push_back({"switchyard_kubernetes_events_up",
                      "Whether the API server took the last Kubernetes event.",
                      {{{}, *stats.up ? 1.0 : 0.0}}});
  }
  return gauges;
}

}  // namespace switchyard::agent
