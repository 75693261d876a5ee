// SPDX-License-Identifier: Apache-2.0
#include "agent/http_server.h"

#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <list>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace switchyard::agent {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;

constexpr int kMaxConnections = 64;
constexpr unsigned kMaxHeaderBytes = 8 * 1024;
constexpr auto kTimeout = std::chrono::seconds(10);
constexpr auto kAcceptRetry = std::chrono::milliseconds(100);

Status FromError(const boost::system::error_code& error, absl::string_view what) {
  return ErrnoError(error.value(), what);
}

// Who answers what. `changes` is null where POST is refused.
struct Handlers {
  HttpHandler get;
  HttpHandler post;
  asio::thread_pool* changes = nullptr;
};

// One connection: read, answer, again until it is closed or idle.
template <typename Protocol>
class Session : public std::enable_shared_from_this<Session<Protocol>> {
 public:
  Session(typename Protocol::socket socket, const Handlers& handlers, std::atomic<int>& open)
      : stream_(std::move(socket)), handlers_(handlers), open_(open) {
    ++open_;
  }
  ~Session() { --open_; }

  void Read() {
    parser_.emplace();
    parser_->header_limit(kMaxHeaderBytes);
    parser_->body_limit(0);
    stream_.expires_after(kTimeout);
    http::async_read(stream_, buffer_, *parser_,
                     [self = this->shared_from_this()](beast::error_code error, std::size_t) {
                       if (!error) self->Answer();
                     });
  }

 private:
  void Answer() {
    const auto& request = parser_->get();
    HttpRequest asked{std::string(request.target())};
    if (request.method() == http::verb::get || request.method() == http::verb::head) {
      Write(handlers_.get(asked));
    } else if (request.method() == http::verb::post && handlers_.changes != nullptr) {
      Change(std::move(asked));
    } else {
      Write({405, "text/plain; charset=utf-8", "only GET and HEAD are served here\n"});
    }
  }

  // On the other thread, and back. Nothing of this session runs meanwhile.
  void Change(HttpRequest asked) {
    asio::post(
        *handlers_.changes, [self = this->shared_from_this(), asked = std::move(asked)]() mutable {
          HttpResponse answer = self->handlers_.post(asked);
          const auto executor = self->stream_.get_executor();
          asio::post(executor, [self = std::move(self), answer = std::move(answer)]() mutable {
            self->Write(std::move(answer));
          });
        });
  }

  void Write(HttpResponse answer) {
    const auto& request = parser_->get();
    response_ = {};
    response_.result(static_cast<unsigned>(answer.status));
    response_.version(request.version());
    response_.keep_alive(request.keep_alive());
    response_.set(http::field::content_type, answer.content_type);
    response_.content_length(answer.body.size());
    if (request.method() != http::verb::head) response_.body() = std::move(answer.body);
    stream_.expires_after(kTimeout);
    http::async_write(stream_, response_,
                      [self = this->shared_from_this()](beast::error_code error, std::size_t) {
                        if (!error && self->response_.keep_alive()) self->Read();
                      });
  }

  beast::basic_stream<Protocol> stream_;
  const Handlers& handlers_;
  std::atomic<int>& open_;
  beast::flat_buffer buffer_{kMaxHeaderBytes};
  std::optional<http::request_parser<http::empty_body>> parser_;
  http::response<http::string_body> response_;
};

template <typename Protocol>
class Listener {
 public:
  Listener(asio::io_context& context, Handlers handlers, std::atomic<int>& open)
      : acceptor_(context), retry_(context), handlers_(std::move(handlers)), open_(open) {}

  Status Open(const typename Protocol::endpoint& endpoint, absl::string_view name) {
    boost::system::error_code error;
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(asio::socket_base::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    return error ? FromError(error, absl::StrCat("listening on ", name)) : OkStatus();
  }

  void Accept() {
    acceptor_.async_accept([this](beast::error_code error, typename Protocol::socket socket) {
      if (error == asio::error::operation_aborted) return;
      if (error) {  // out of descriptors, most likely: some may be given back meanwhile
        retry_.expires_after(kAcceptRetry);
        retry_.async_wait([this](beast::error_code cancelled) {
          if (!cancelled) Accept();
        });
        return;
      }
      if (open_ < kMaxConnections) {
        std::make_shared<Session<Protocol>>(std::move(socket), handlers_, open_)->Read();
      }
      Accept();
    });
  }

  typename Protocol::acceptor acceptor_;

 private:
  asio::steady_timer retry_;
  const Handlers handlers_;
  std::atomic<int>& open_;
};

}  // namespace

struct HttpServer::Impl {
  std::atomic<int> open = 0;  // outlives the sessions that the context owns
  std::list<Listener<asio::ip::tcp>> tcp;
  std::list<Listener<asio::local::stream_protocol>> local;
  std::vector<std::string> paths;
  asio::io_context context{1};
  std::thread thread;
  std::optional<asio::thread_pool> changes;  // made with the first listener that takes POST
};

HttpServer::HttpServer() : impl_(std::make_unique<Impl>()) {}

HttpServer::~HttpServer() {
  impl_->context.stop();
  if (impl_->thread.joinable()) impl_->thread.join();
  if (impl_->changes) {
    impl_->changes->stop();
    impl_->changes->join();
  }
  for (const std::string& path : impl_->paths) ::unlink(path.c_str());
  impl_->tcp.clear();
  impl_->local.clear();
}

Result<std::string> HttpServer::ListenTcp(const std::string& address, HttpHandler handler) {
  const size_t colon = address.rfind(':');
  int port = -1;
  std::string host = address.substr(0, colon == std::string::npos ? 0 : colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  boost::system::error_code error;
  const auto ip = asio::ip::make_address(host, error);
  if (error || colon == std::string::npos || !absl::SimpleAtoi(address.substr(colon + 1), &port) ||
      port < 0 || port > 65535) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", address, "\" is not an address to listen on; write IP:PORT, such as 127.0.0.1:9417"));
  }
  auto& listener = impl_->tcp.emplace_back(
      impl_->context, Handlers{std::move(handler), nullptr, nullptr}, impl_->open);
  RETURN_IF_ERROR(listener.Open({ip, static_cast<std::uint16_t>(port)}, address));
  const auto bound = listener.acceptor_.local_endpoint(error);
  if (error) return FromError(error, address);
  listener.Accept();
  return absl::StrCat(ip.is_v6() ? absl::StrCat("[", host, "]") : host, ":", bound.port());
}

Status HttpServer::ListenUnix(const std::string& path, HttpHandler handler, HttpHandler changes) {
  // The kernel's limit for the path of a unix socket (sun_path), without the final zero.
  constexpr size_t kMaxPath = 107;
  if (path.size() > kMaxPath) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": longer than ", kMaxPath, " bytes, the limit of a unix socket"));
  }
  {
    // Two agents with different state folders do not share an owner lock.
    boost::system::error_code refused;
    asio::local::stream_protocol::socket probe(impl_->context);
    (void)probe.connect({path}, refused);
    if (!refused) {
      return absl::AlreadyExistsError(absl::StrCat(
          path, ": somebody listens there; does another agent run with another state folder?"));
    }
  }
  ::unlink(path.c_str());
  Handlers handlers{std::move(handler), std::move(changes), nullptr};
  if (handlers.post != nullptr) {
    if (!impl_->changes) {
      impl_->changes.emplace(1);
      asio::post(*impl_->changes, [] { pthread_setname_np(pthread_self(), "changes"); });
    }
    handlers.changes = &*impl_->changes;
  }
  auto& listener = impl_->local.emplace_back(impl_->context, std::move(handlers), impl_->open);
  RETURN_IF_ERROR(listener.Open({path}, path));
  if (::chmod(path.c_str(), 0600) != 0) return ErrnoError(errno, path);
  impl_->paths.push_back(path);
  listener.Accept();
  return OkStatus();
}

void HttpServer::Start() {
  impl_->thread = std::thread([this] {
    pthread_setname_np(pthread_self(), "http");
    impl_->context.run();
  });
}

}  // namespace switchyard::agent
