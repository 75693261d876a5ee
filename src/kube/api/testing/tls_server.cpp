// SPDX-License-Identifier: Apache-2.0
#include "kube/api/testing/tls_server.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <utility>

namespace switchyard::kube::api::testing {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;

using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using X509Ptr = std::unique_ptr<X509, decltype(&X509_free)>;

template <typename Write>
std::string Pem(Write write) {
  BIO* const bio = BIO_new(BIO_s_mem());
  write(bio);
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio, &text);
  std::string pem(text, static_cast<size_t>(size));
  BIO_free(bio);
  return pem;
}

void AddExtension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str());
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

X509Ptr Make(EVP_PKEY* key, X509* issuer, EVP_PKEY* issuer_key, std::string name,
             const std::string& alternative) {
  static std::atomic<int> last = 0;
  const int serial = ++last;
  X509Ptr made(X509_new(), &X509_free);
  X509_set_version(made.get(), X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(made.get()), serial);
  X509_gmtime_adj(X509_getm_notBefore(made.get()), -3600);
  X509_gmtime_adj(X509_getm_notAfter(made.get()), 3600);
  X509_set_pubkey(made.get(), key);
  name += " " + std::to_string(serial);  // a CA is looked for by its name
  X509_NAME_add_entry_by_txt(X509_get_subject_name(made.get()), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509* const signer = issuer == nullptr ? made.get() : issuer;
  X509_set_issuer_name(made.get(), X509_get_subject_name(signer));
  if (issuer == nullptr)
    AddExtension(made.get(), signer, NID_basic_constraints, "critical,CA:TRUE");
  if (!alternative.empty()) AddExtension(made.get(), signer, NID_subject_alt_name, alternative);
  X509_sign(made.get(), issuer_key, EVP_sha256());
  return made;
}

std::string PemOf(X509* certificate) {
  return Pem([&](BIO* bio) { PEM_write_bio_X509(bio, certificate); });
}

}  // namespace

struct TestCa::Keys {
  Key key{EVP_EC_gen("P-256"), &EVP_PKEY_free};
  X509Ptr certificate = Make(key.get(), nullptr, key.get(), "test CA", "");
};

TestCa::TestCa() : keys_(std::make_unique<Keys>()), pem_(PemOf(keys_->certificate.get())) {}
TestCa::~TestCa() = default;

Certificate TestCa::Issue(const std::string& subject_alternative_name) const {
  const Key key(EVP_EC_gen("P-256"), &EVP_PKEY_free);
  const X509Ptr made = Make(key.get(), keys_->certificate.get(), keys_->key.get(), "server",
                            subject_alternative_name);
  return {PemOf(made.get()), Pem([&](BIO* bio) {
            PEM_write_bio_PrivateKey(bio, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
          })};
}

struct TlsServer::Impl {
  Impl(const Certificate& certificate, Handler answer)
      : acceptor(io, {asio::ip::address_v4::loopback(), 0}), handler(std::move(answer)) {
    tls.use_certificate_chain(asio::buffer(certificate.certificate));
    tls.use_private_key(asio::buffer(certificate.key), asio::ssl::context::pem);
  }

  void Run() {
    while (!stopping) {
      tcp::socket socket(io);
      boost::system::error_code error;
      (void)acceptor.accept(socket, error);
      if (!error && !stopping) Serve(std::move(socket));
    }
  }

  // Whatever goes wrong is for the client to notice.
  void Serve(tcp::socket socket) {
    boost::system::error_code error;
    asio::ssl::stream<tcp::socket> stream(std::move(socket), tls);
    (void)stream.handshake(asio::ssl::stream_base::server, error);
    if (error) return;
    boost::beast::flat_buffer buffer;
    http::request<http::string_body> request;
    http::read(stream, buffer, request, error);
    if (error) return;
    const auto field = [&](http::field name) { return std::string(request[name]); };
    const Reply reply =
        handler({std::string(request.method_string()), std::string(request.target()),
                 field(http::field::host), field(http::field::authorization),
                 field(http::field::content_type), request.body()});
    if (reply.never) {
      char nothing = 0;
      asio::read(stream, asio::buffer(&nothing, 1), error);
      return;
    }
    http::response<http::string_body> response(static_cast<http::status>(reply.status), 11);
    if (!reply.retry_after.empty()) response.set(http::field::retry_after, reply.retry_after);
    response.body() = reply.body;
    if (reply.chunked) {
      response.chunked(true);
    } else {
      response.prepare_payload();
    }
    http::write(stream, response, error);
    (void)stream.shutdown(error);
  }

  std::atomic<bool> stopping = false;
  asio::io_context io;
  asio::ssl::context tls{asio::ssl::context::tls_server};
  tcp::acceptor acceptor;
  const Handler handler;
};

TlsServer::TlsServer(const Certificate& certificate, Handler handler)
    : impl_(std::make_unique<Impl>(certificate, std::move(handler))),
      port_(impl_->acceptor.local_endpoint().port()),
      thread_([this] { impl_->Run(); }) {}

TlsServer::~TlsServer() {
  impl_->stopping = true;
  // Ends the accept that waits.
  asio::io_context io;
  tcp::socket socket(io);
  boost::system::error_code error;
  (void)socket.connect({asio::ip::address_v4::loopback(), port_}, error);
  thread_.join();
}

}  // namespace switchyard::kube::api::testing
