// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "agent/user_events.h"
#include "apps/doctor.h"
#include "kube/api/client.h"
#include "kube/api/https.h"

namespace switchyard::apps {
namespace {

// What /version says; whoever has a token may ask.
Result<std::string> VersionOf(const kube::api::InCluster& cluster) {
  const auto transport = kube::api::MakeHttps(cluster);
  kube::api::Client client(cluster, *transport);
  ASSIGN_OR_RETURN(const std::string answer,
                   client.Call({kube::api::Method::kGet, "/version", ""}));
  const auto version = nlohmann::json::parse(answer, nullptr, /*allow_exceptions=*/false);
  const bool said =
      version.is_object() && version.contains("gitVersion") && version["gitVersion"].is_string();
  return said ? version["gitVersion"].get<std::string>() : "of an unknown version";
}

}  // namespace

void CheckCluster(const agent::Config& config, Findings& findings) {
  const Result<kube::api::InCluster> cluster = agent::FindApiServer(config);
  if (absl::IsNotFound(cluster.status())) {
    findings.push_back(
        {"api server", Verdict::kOk,
         absl::StrCat("not configured, so no Kubernetes events: ", cluster.status().message()),
         ""});
    return;
  }
  if (!cluster.ok()) {
    findings.push_back({"api server", Verdict::kWarning, std::string(cluster.status().message()),
                        "kubelet sets it for a pod: see who changed it"});
    return;
  }
  const Result<std::string> version = VersionOf(*cluster);
  if (!version.ok()) {
    findings.push_back({"api server", Verdict::kWarning, std::string(version.status().message()),
                        "there are no Kubernetes events until it answers; nothing else needs it"});
  } else if (config.node_name.empty()) {
    findings.push_back({"api server", Verdict::kWarning,
                        "answers, but kubernetes.nodeName is not set: no Kubernetes events",
                        "set NODE_NAME to spec.nodeName, as deploy/switchyard.yaml does"});
  } else {
    findings.push_back({"api server", Verdict::kOk,
                        absl::StrCat(cluster->ToString(), " answers, Kubernetes ", *version,
                                     "; this node is ", config.node_name),
                        ""});
  }
}

}  // namespace switchyard::apps
