// SPDX-License-Identifier: Apache-2.0
#include "agent/http_routes.h"

#include <sys/stat.h>

#include <iterator>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "agent/enforce_gauges.h"
#include "agent/enforce_json.h"
#include "agent/gauges.h"
#include "agent/status_json.h"

namespace switchyard::agent {
namespace {

HttpResponse Json(std::string body) { return {200, "application/json", std::move(body)}; }

// The database and its write-ahead log, which may be gone.
std::optional<std::uint64_t> StateBytes(const std::string& folder) {
  struct stat file{};
  if (::stat(absl::StrCat(folder, "/switchyard.db").c_str(), &file) != 0) return std::nullopt;
  struct stat log{};
  const bool logged = ::stat(absl::StrCat(folder, "/switchyard.db-wal").c_str(), &log) == 0;
  return static_cast<std::uint64_t>(file.st_size + (logged ? log.st_size : 0));
}

HttpResponse Refusal(const Status& status) {
  const bool later = absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
  return {later ? 503 : 409, "text/plain; charset=utf-8", absl::StrCat(status.message(), "\n")};
}

}  // namespace

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

HttpHandler Routes::Changes() const {
  return [routes = *this](const HttpRequest& request) { return routes.Change(request.target); };
}

std::vector<Gauge> Routes::Gauges() const {
  std::vector<Gauge> gauges = MakeGauges(config_.fabric.mode, tenancies_.View(), plugins_.Status(),
                                         background_.inventory().get());
  if (const std::optional<tenancy::EnforceView> view = tenancies_.Enforced()) {
    std::vector<Gauge> more = MakeEnforceGauges(*view, StateBytes(config_.paths.state));
    gauges.insert(gauges.end(), std::make_move_iterator(more.begin()),
                  std::make_move_iterator(more.end()));
  }
  if (user_events_ != nullptr) {
    std::vector<Gauge> more = MakeUserEventGauges(user_events_->stats());
    gauges.insert(gauges.end(), std::make_move_iterator(more.begin()),
                  std::make_move_iterator(more.end()));
  }
  return gauges;
}

HttpResponse Routes::TenanciesAnswer() const {
  const std::optional<tenancy::EnforceView> view = tenancies_.Enforced();
  if (view) return Json(EnforceJson(*view));
  return Refusal(absl::FailedPreconditionError(
      absl::StrCat("there are no tenancies: fabric.mode of the running agent is ",
                   tenancy::FabricModeName(config_.fabric.mode), ", not enforce")));
}

HttpResponse Routes::Change(const std::string& target) const {
  const std::vector<std::string> words = absl::StrSplit(target, '/');  // "", "v1", what, ...
  if (target == "/v1/drain/on" || target == "/v1/drain/off") {
    const Status done = tenancies_.Drain(target == "/v1/drain/on");
    return done.ok() ? TenanciesAnswer() : Refusal(done);
  }
  if (target == "/v1/reconcile/plan") {
    const Result<std::vector<tenancy::PlannedAction>> plan = tenancies_.PlanReconcile();
    return plan.ok() ? Json(PlanJson(*plan)) : Refusal(plan.status());
  }
  std::uint64_t id = 0;
  const bool force = words.size() == 5 && words[4] == "force";
  if (words.size() >= 4 && words[1] == "v1" && words[2] == "release" &&
      absl::SimpleAtoi(words[3], &id) && (words.size() == 4 || force)) {
    const Status done = tenancies_.ReleaseByOperator(id, force);
    return done.ok() ? TenanciesAnswer() : Refusal(done);
  }
  return {404, "text/plain; charset=utf-8",
          absl::StrCat(target,
                       ": not served; try /v1/drain/on, /v1/drain/off, /v1/release/ID, "
                       "/v1/release/ID/force, /v1/reconcile/plan\n")};
}

HttpResponse Routes::Answer(const std::string& target, bool to_operator) const {
  if (target == "/healthz") return {200, "text/plain; charset=utf-8", "ok\n"};
  if (target == "/readyz") return Readiness();
  if (target == "/metrics") {
    return {200, "text/plain; version=0.0.4; charset=utf-8", metrics_.Text(Gauges())};
  }
  if (to_operator && target == "/v1/fabric") {
    return {200, "application/json",
            FabricJson(config_.fabric.mode, tenancies_.View(), background_.inventory().get())};
  }
  if (to_operator && target == "/v1/tenancies") return TenanciesAnswer();
  if (to_operator && target == "/v1/resources") {
    return {200, "application/json", ResourcesJson(*catalogue_.Current(), plugins_.Status())};
  }
  return {404, "text/plain; charset=utf-8",
          absl::StrCat(target, ": not served; try /metrics, /healthz, /readyz",
                       to_operator ? ", /v1/fabric, /v1/resources, /v1/tenancies" : "", "\n")};
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
