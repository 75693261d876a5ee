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
#include "kube/catalogue.h"
#include "kube/device_plugins.h"
#include "tenancy/tenancies.h"

namespace switchyard::agent {

class Routes {
 public:
  Routes(const Config& config, const Metrics& metrics, const tenancy::Tenancies& tenancies,
         const kube::Catalogue& catalogue, const kube::DevicePlugins& plugins,
         const Background& background)
      : config_(config),
        metrics_(metrics),
        tenancies_(tenancies),
        catalogue_(catalogue),
        plugins_(plugins),
        background_(background) {}

  // /metrics, /healthz, /readyz. The handlers copy this object.
  [[nodiscard]] HttpHandler Public() const;
  // The same, and /v1/fabric, /v1/resources.
  [[nodiscard]] HttpHandler Operator() const;

 private:
  [[nodiscard]] HttpResponse Answer(const std::string& target, bool to_operator) const;
  [[nodiscard]] HttpResponse Readiness() const;

  const Config& config_;
  const Metrics& metrics_;
  const tenancy::Tenancies& tenancies_;
  const kube::Catalogue& catalogue_;
  const kube::DevicePlugins& plugins_;
  const Background& background_;
};

}  // namespace switchyard::agent
