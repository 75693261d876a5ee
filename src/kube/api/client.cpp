// SPDX-License-Identifier: Apache-2.0
#include "kube/api/client.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace switchyard::kube::api {
namespace {

constexpr char kRetryAfter[] = "switchyard/retry-after";
constexpr size_t kMaxMessage = 512;

absl::StatusCode CodeOf(int status) {
  switch (status) {
    case 400:
    case 422:
      return absl::StatusCode::kInvalidArgument;
    case 401:
      return absl::StatusCode::kUnauthenticated;
    case 403:
      return absl::StatusCode::kPermissionDenied;
    case 404:
      return absl::StatusCode::kNotFound;
    case 409:
      return absl::StatusCode::kAlreadyExists;
    case 429:
      return absl::StatusCode::kResourceExhausted;
    default:
      return status >= 500 ? absl::StatusCode::kUnavailable : absl::StatusCode::kUnknown;
  }
}

// A metav1.Status says it in "message"; a proxy in between says what it likes.
std::string MessageOf(const std::string& body) {
  const auto parsed = nlohmann::json::parse(body, nullptr, /*allow_exceptions=*/false);
  std::string message = body;
  if (parsed.is_object() && parsed.contains("message") && parsed["message"].is_string())
    message = parsed["message"].get<std::string>();
  return absl::Utf8SafeCHexEscape(message.substr(0, kMaxMessage));
}

Status ErrorOf(const Answer& answer) {
  Status error(CodeOf(answer.status),
               absl::StrCat("HTTP ", answer.status, ": ", MessageOf(answer.body)));
  if (answer.retry_after > absl::ZeroDuration()) {
    error.SetPayload(kRetryAfter,
                     absl::Cord(absl::StrCat(absl::ToInt64Milliseconds(answer.retry_after))));
  }
  return error;
}

// The file is kubelet's: without it nobody is asked, and it may be back.
Result<std::string> TokenOf(const InCluster& cluster) {
  Result<std::string> token = ReadToken(cluster);
  if (!token.ok()) return absl::UnavailableError(token.status().message());
  return token;
}

}  // namespace

Client::Client(InCluster cluster, Transport& transport)
    : cluster_(std::move(cluster)), transport_(transport) {}

Result<std::string> Client::Call(const Request& request) {
  ASSIGN_OR_RETURN(const std::string token, TokenOf(cluster_));
  Result<Answer> answer = transport_.Send(request, token);
  if (answer.ok() && answer->status == 401) {
    ASSIGN_OR_RETURN(const std::string newer, TokenOf(cluster_));
    if (newer != token) answer = transport_.Send(request, newer);
  }
  if (!answer.ok()) return Annotate(answer.status(), address());
  if (answer->status / 100 == 2) return std::move(answer->body);
  return Annotate(ErrorOf(*answer), address());
}

absl::Duration RetryAfter(const Status& status) {
  const auto payload = status.GetPayload(kRetryAfter);
  std::int64_t milliseconds = 0;
  if (!payload || !absl::SimpleAtoi(std::string(*payload), &milliseconds))
    return absl::ZeroDuration();
  return absl::Milliseconds(milliseconds);
}

}  // namespace switchyard::kube::api
