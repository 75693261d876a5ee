// SPDX-License-Identifier: Apache-2.0
#pragma once

// A small HTTP/1.1 server for metrics, probes and operators: one thread, GET and HEAD, every size
// and wait bounded (8 KiB of header, no body, 64 connections, 10 s). The handler runs on the
// server's thread and must not block for long; what an operator asks to be done (POST) may: it has
// a thread of its own. Boost.Beast stays behind this header.

#include <functional>
#include <memory>
#include <string>

#include "base/status.h"

namespace switchyard::agent {

struct HttpRequest {
  std::string target;  // "/metrics", as sent
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

using HttpHandler = std::function<HttpResponse(const HttpRequest&)>;

class HttpServer {
 public:
  HttpServer();
  ~HttpServer();  // ends connections and threads (a POST that runs is waited for), removes the unix
                  // sockets

  // "127.0.0.1:9417", "[::1]:9417"; port 0 = any free one. Returns the address it listens on.
  [[nodiscard]] Result<std::string> ListenTcp(const std::string& address, HttpHandler handler);
  // Mode 0600, set after the bind: have a umask of 0077 too. A socket that nobody listens on is
  // replaced; kAlreadyExists if somebody does. `changes` answers POST, one at a time; without it
  // POST is refused.
  [[nodiscard]] Status ListenUnix(const std::string& path, HttpHandler handler,
                                  HttpHandler changes = nullptr);
  // After the listeners are set up.
  void Start();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace switchyard::agent
