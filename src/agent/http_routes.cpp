// SPDX-License-Identifier: Apache-2.0
#include "agent/http_routes.h"

#include "absl/strings/str_cat.h"
#include "agent/gauges.h"
#include "agent/status_json.h"

namespace switchyard::agent {

HttpHandler Routes::Public() const {
  return [routes = *this](const HttpRequest& request) {
    return routes.Answer(request.target, /*to_operator=*/false);
  };
}

HttpHandler Routes::Operator() const {
  return [routes = *this](const HttpRequest& request) {
    return routes.Answer(request.target, /*to_operator=*/true);
  };
}

HttpResponse Routes::Answer(const std::string& target, bool to_operator) const {
  if (target == "/healthz") return {200, "text/plain; charset=utf-8", "ok\n"};
  if (target == "/readyz") return Readiness();
  if (target == "/metrics") {
    return {200, "text/plain; version=0.0.4; charset=utf-8",
            metrics_.Text(MakeGauges(config_.fabric.mode, tenancies_.View(), plugins_.Status(),
                                     background_.inventory().get()))};
  }
  if (to_operator && target == "/v1/fabric") {
    return {200, "application/json",
            FabricJson(config_.fabric.mode, tenancies_.View(), background_.inventory().get())};
  }
  if (to_operator && target == "/v1/resources") {
    return {200, "application/json", ResourcesJson(*catalogue_.Current(), plugins_.Status())};
  }
  return {404, "text/plain; charset=utf-8",
          absl::StrCat(target, ": not served; try /metrics, /healthz, /readyz",
                       to_operator ? ", /v1/fabric, /v1/resources" : "", "\n")};
}

// Ready: the devices were listed, and kubelet reads the list of every resource; in enforce also
// that partitions can be changed and the journal written. In advise Fabric Manager's absence is a
// normal state: it is told here and keeps nothing back.
HttpResponse Routes::Readiness() const {
  bool ready = true;
  std::string body;
  const std::string scan_error = background_.scan_error();
  if (!scan_error.empty() || background_.inventory() == nullptr) {
    ready = false;
    absl::StrAppend(&body, "not ready: inventory: ", scan_error, "\n");
  } else {
    absl::StrAppend(&body, "ok: inventory\n");
  }
  for (const kube::DevicePlugins::ResourceStatus& resource : plugins_.Status()) {
    ready = ready && resource.streaming;
    absl::StrAppend(&body, resource.streaming ? "ok: " : "not ready: ", resource.resource,
                    resource.streaming ? "" : ": ", resource.problem, "\n");
  }
  if (config_.fabric.mode != tenancy::FabricMode::kOff) {
    const tenancy::FabricView fabric = tenancies_.View();
    const bool needed = config_.fabric.mode == tenancy::FabricMode::kEnforce;
    ready = ready && (fabric.up || !needed);
    const char* const down = needed ? "not ready: fabric: " : "warning: fabric: ";
    absl::StrAppend(&body, fabric.up ? "ok: fabric" : down, fabric.error, "\n");
    if (needed) {
      const Status journal = tenancies_.JournalStatus();
      ready = ready && journal.ok();
      absl::StrAppend(
          &body, journal.ok() ? "ok: journal" : "not ready: journal: ", journal.message(), "\n");
    }
  }
  return {ready ? 200 : 503, "text/plain; charset=utf-8", body};
}

}  // namespace switchyard::agent
