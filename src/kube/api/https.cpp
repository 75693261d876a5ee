// SPDX-License-Identifier: Apache-2.0
#include "kube/api/https.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/files.h"
#include "kube/api/name_lookup.h"

namespace switchyard::kube::api {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using Error = boost::system::error_code;

constexpr size_t kMaxCaBytes = size_t{1} << 20;
constexpr unsigned kMaxHeaderBytes = 16 * 1024;
constexpr int kMaxRetryAfterSeconds = 3600;

http::verb VerbOf(Method method) {
  switch (method) {
    case Method::kGet:
      return http::verb::get;
    case Method::kPost:
      return http::verb::post;
    case Method::kPatch:
      return http::verb::patch;
  }
  return http::verb::unknown;
}

// Trusts that CA and nothing else, not even what OpenSSL's own configuration names.
Result<asio::ssl::context> MakeContext(const std::string& ca_file) {
  OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
  ASSIGN_OR_RETURN(const std::string ca, ReadFile(ca_file, kMaxCaBytes));
  asio::ssl::context context(asio::ssl::context::tls_client);
  Error error;
  (void)context.add_certificate_authority(asio::buffer(ca), error);
  if (error)
    return absl::UnavailableError(absl::StrCat(ca_file, ": no certificate: ", error.message()));
  SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_2_VERSION);
  context.set_verify_mode(asio::ssl::verify_peer);
  return context;
}

// One request on one connection. Each step begins the next; whoever runs the context sets the end.
class Exchange {
 public:
  Exchange(asio::io_context& io, asio::ssl::context& tls, const InCluster& cluster,
           const HttpsOptions& options, const Request& request, absl::string_view token)
      : stream_(io, tls), host_(cluster.host) {
    request_.method(VerbOf(request.method));
    request_.target(request.path);
    request_.version(11);
    request_.set(http::field::host, cluster.ToString().substr(sizeof("https://") - 1));
    request_.set(http::field::user_agent, "switchyard");
    request_.set(http::field::accept, "application/json");
    request_.set(http::field::authorization, absl::StrCat("Bearer ", token));
    request_.set(http::field::connection, "close");
    if (!request.body.empty()) {
      request_.set(http::field::content_type, request.method == Method::kPatch
                                                  ? "application/merge-patch+json"
                                                  : "application/json");
      request_.body() = request.body;
      request_.prepare_payload();
    }
    parser_.header_limit(kMaxHeaderBytes);
    parser_.body_limit(options.max_answer);
  }

  void Begin(const std::vector<tcp::endpoint>& endpoints) {
    asio::async_connect(stream_.lowest_layer(), endpoints,
                        [this](const Error& error, const tcp::endpoint&) {
                          if (error) return Fail("connecting", error);
                          ShakeHands();
                        });
  }

  // Nothing while it is not over.
  std::optional<Result<Answer>> result;

 private:
  void ShakeHands() {
    SSL* const ssl = stream_.native_handle();
    X509_VERIFY_PARAM* const rules = SSL_get0_param(ssl);
    const bool set = IsAddress(host_)
                         ? X509_VERIFY_PARAM_set1_ip_asc(rules, host_.c_str()) == 1
                         : SSL_set_tlsext_host_name(ssl, host_.c_str()) == 1 &&
                               X509_VERIFY_PARAM_set1_host(rules, host_.c_str(), 0) == 1;
    if (!set) {
      result = absl::InternalError(absl::StrCat("OpenSSL takes no host ", host_));
      return;
    }
    stream_.async_handshake(asio::ssl::stream_base::client, [this](const Error& error) {
      const long verdict = SSL_get_verify_result(stream_.native_handle());
      if (error && verdict != X509_V_OK) {
        result = absl::UnavailableError(
            absl::StrCat("the server's certificate: ", X509_verify_cert_error_string(verdict)));
        return;
      }
      if (error) return Fail("TLS", error);
      Write();
    });
  }

  void Write() {
    http::async_write(stream_, request_, [this](const Error& error, std::size_t) {
      if (error) return Fail("sending the request", error);
      Read();
    });
  }

  void Read() {
    http::async_read(stream_, buffer_, parser_, [this](const Error& error, std::size_t) {
      if (error == http::error::body_limit || error == http::error::header_limit) {
        result = absl::OutOfRangeError("the server's answer is too long");
        return;
      }
      if (error) return Fail("reading the answer", error);
      Answer answer;
      answer.status = parser_.get().result_int();
      int seconds = 0;
      if (absl::SimpleAtoi(std::string(parser_.get()[http::field::retry_after]), &seconds))
        answer.retry_after = absl::Seconds(std::clamp(seconds, 0, kMaxRetryAfterSeconds));
      answer.body = std::move(parser_.get().body());
      result = std::move(answer);
    });
  }

  void Fail(absl::string_view step, const Error& error) {
    result = absl::UnavailableError(absl::StrCat(step, ": ", error.message()));
  }

  asio::ssl::stream<tcp::socket> stream_;
  const std::string host_;
  http::request<http::string_body> request_;
  boost::beast::flat_buffer buffer_{kMaxHeaderBytes + 64 * 1024};
  http::response_parser<http::string_body> parser_;
};

class Https final : public Transport {
 public:
  Https(const InCluster& cluster, const HttpsOptions& options)
      : cluster_(cluster), options_(options), lookup_(cluster.host) {}

  Result<Answer> Send(const Request& request, absl::string_view token) override {
    const absl::Duration deadline = clock_.Monotonic() + options_.timeout;
    ASSIGN_OR_RETURN(asio::ssl::context tls, MakeContext(cluster_.ca_file()));
    ASSIGN_OR_RETURN(const std::vector<std::string> addresses, lookup_.Wait(options_.timeout));
    std::vector<tcp::endpoint> endpoints;
    for (const std::string& address : addresses) {
      Error error;
      const auto ip = asio::ip::make_address(address, error);
      if (!error) endpoints.emplace_back(ip, cluster_.port);
    }
    asio::io_context io{1};
    Exchange exchange(io, tls, cluster_, options_, request, token);
    exchange.Begin(endpoints);
    if (!SetRunning(&io)) return absl::CancelledError("closed");
    io.run_for(absl::ToChronoNanoseconds(deadline - clock_.Monotonic()));
    if (!SetRunning(nullptr)) return absl::CancelledError("closed");
    if (exchange.result) return *std::move(exchange.result);
    return absl::DeadlineExceededError(
        absl::StrCat("no answer within ", absl::FormatDuration(options_.timeout)));
  }

  void Close() override {
    lookup_.Cancel();
    const std::lock_guard lock(mutex_);
    closed_ = true;
    if (running_ != nullptr) running_->stop();
  }

 private:
  // False: closed.
  bool SetRunning(asio::io_context* io) {
    const std::lock_guard lock(mutex_);
    running_ = io;
    return !closed_;
  }

  const InCluster cluster_;
  const HttpsOptions options_;
  RealClock clock_;  // the network's time, whatever clock the caller has
  NameLookup lookup_;
  std::mutex mutex_;
  asio::io_context* running_ = nullptr;  // this and the next: under mutex_
  bool closed_ = false;
};

}  // namespace

std::unique_ptr<Transport> MakeHttps(const InCluster& cluster, const HttpsOptions& options) {
  return std::make_unique<Https>(cluster, options);
}

}  // namespace switchyard::kube::api
