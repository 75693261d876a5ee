// SPDX-License-Identifier: Apache-2.0
#pragma once

// What is served where: metrics and probes to anybody who reaches http.address, the operator's JSON
// on the root-only socket. Reads the parts' own views; everything borrowed outlives the server.

#include <string>
#include <vector>

#include "agent/background.h"
#include "agent/config.h"
#include "agent/http_server.h"
#include "agent/metrics.h"
#include "agent/user_events.h"
#include "kube/catalogue.h"
#include "kube/device_plugins.h"
#include "tenancy/tenancies.h"

namespace switchyard::agent {

class Routes {
 public:
  // `user_events` may be null.
  Routes(const Config& config, const Metrics& metrics, tenancy::Tenancies& tenancies,
         const kube::Catalogue& catalogue, const kube::DevicePlugins& plugins,
         const Background& background, const UserEvents* user_events)
      : config_(config),
        metrics_(metrics),
        tenancies_(tenancies),
        catalogue_(catalogue),
        plugins_(plugins),
        background_(background),
        user_events_(user_events) {}

  // /metrics, /healthz, /readyz. The handlers copy this object.
  [[nodiscard]] HttpHandler Public() const;
  // The same, and /v1/fabric, /v1/resources, /v1/tenancies.
  [[nodiscard]] HttpHandler Operator() const;
  // POST from operators: /v1/drain/on, /v1/drain/off, /v1/release/ID, /v1/release/ID/force,
  // /v1/reconcile/plan. 409 with the reason: refused; 503: not now. May wait for Fabric Manager.
  [[nodiscard]] HttpHandler Changes() const;

 private:
  [[nodiscard]] HttpResponse Answer(const std::string& target, bool to_operator) const;
  [[nodiscard]] HttpResponse Readiness() const;
  [[nodiscard]] std::vector<Gauge> Gauges() const;
  [[nodiscard]] HttpResponse TenanciesAnswer() const;
  [[nodiscard]] HttpResponse Change(const std::string& target) const;

  const Config& config_;
  const Metrics& metrics_;
  tenancy::Tenancies& tenancies_;
  const kube::Catalogue& catalogue_;
  const kube::DevicePlugins& plugins_;
  const Background& background_;
  const UserEvents* user_events_;
};

}  // namespace switchyard::agent
