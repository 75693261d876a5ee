// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests: a TLS server on 127.0.0.1 that answers one request a connection, and certificates made
// on the spot. One thread; the handler runs on it.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

namespace switchyard::kube::api::testing {

struct Certificate {
  std::string certificate;  // PEM, as the key
  std::string key;
};

class TestCa {
 public:
  TestCa();
  ~TestCa();
  [[nodiscard]] const std::string& certificate() const { return pem_; }
  // For "IP:127.0.0.1" or "DNS:api.test".
  [[nodiscard]] Certificate Issue(const std::string& subject_alternative_name) const;

 private:
  struct Keys;
  std::unique_ptr<Keys> keys_;
  std::string pem_;
};

struct Received {
  std::string method;
  std::string target;
  std::string host;
  std::string authorization;
  std::string content_type;
  std::string body;
};

struct Reply {
  int status = 200;
  std::string body = {};
  std::string retry_after = {};  // empty: no such header
  bool chunked = false;          // the length is not said in front
  bool never = false;            // nothing is answered until the client has gone
};

class TlsServer {
 public:
  using Handler = std::function<Reply(const Received&)>;
  TlsServer(const Certificate& certificate, Handler handler);
  ~TlsServer();
  [[nodiscard]] std::uint16_t port() const { return port_; }

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

}  // namespace switchyard::kube::api::testing
