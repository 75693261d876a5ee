// SPDX-License-Identifier: Apache-2.0
#include "agent/http_server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <thread>

#include "absl/synchronization/notification.h"
#include "base/unique_fd.h"

namespace switchyard::agent {
namespace {

// Sends `request` and reads until the server closes.
std::string Exchange(int fd, const std::string& request) {
  EXPECT_EQ(::send(fd, request.data(), request.size(), 0), static_cast<ssize_t>(request.size()));
  std::string answer;
  char buffer[4096];
  for (ssize_t got; (got = ::recv(fd, buffer, sizeof(buffer), 0)) > 0;) answer.append(buffer, got);
  return answer;
}

UniqueFd ConnectTcp(const std::string& address) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port =
      htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM, 0));
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
  return fd;
}

HttpResponse Echo(const HttpRequest& request) {
  return {request.target == "/missing" ? 404 : 200, "text/plain",
          "you asked for " + request.target};
}

class HttpServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto address = server_.ListenTcp("127.0.0.1:0", Echo);
    ASSERT_TRUE(address.ok()) << address.status();
    address_ = *address;
    server_.Start();
  }
  std::string Get(const std::string& request) {
    return Exchange(ConnectTcp(address_).get(), request);
  }

  HttpServer server_;
  std::string address_;
};

TEST_F(HttpServerTest, AnswersGetWithTheHandlersBodyAndStatus) {
  const std::string ok = Get("GET /metrics HTTP/1.1\r\nConnection: close\r\n\r\n");
  EXPECT_NE(ok.find("200 OK"), std::string::npos) << ok;
  EXPECT_NE(ok.find("you asked for /metrics"), std::string::npos) << ok;
  EXPECT_NE(Get("GET /missing HTTP/1.1\r\nConnection: close\r\n\r\n").find("404"),
            std::string::npos);
}

TEST_F(HttpServerTest, HeadHasNoBodyAndPostIsRefused) {
  const std::string head = Get("HEAD /x HTTP/1.1\r\nConnection: close\r\n\r\n");
  EXPECT_NE(head.find("200 OK"), std::string::npos);
  EXPECT_EQ(head.find("you asked"), std::string::npos);
  EXPECT_NE(Get("POST /x HTTP/1.1\r\nConnection: close\r\n\r\n").find("405"), std::string::npos);
}

// A change that takes long keeps nobody from reading.
TEST(HttpServerPostTest, ChangesHaveAThreadOfTheirOwn) {
  char folder[] = "/tmp/sy-http-XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  const std::string path = std::string(folder) + "/a.sock";
  absl::Notification reached;
  absl::Notification go_on;
  std::string posted;
  {
    HttpServer server;
    const Status listening = server.ListenUnix(path, Echo, [&](const HttpRequest& request) {
      reached.Notify();
      go_on.WaitForNotification();
      return HttpResponse{409, "text/plain", "refused " + request.target};
    });
    ASSERT_TRUE(listening.ok()) << listening;
    server.Start();
    const auto connect = [&path] {
      sockaddr_un to{};
      to.sun_family = AF_UNIX;
      std::strncpy(to.sun_path, path.c_str(), sizeof(to.sun_path) - 1);
      UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM, 0));
      EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
      return fd;
    };
    std::thread poster([&] {
      posted = Exchange(connect().get(), "POST /change HTTP/1.1\r\nConnection: close\r\n\r\n");
    });
    reached.WaitForNotification();
    EXPECT_NE(Exchange(connect().get(), "GET /view HTTP/1.1\r\nConnection: close\r\n\r\n")
                  .find("you asked for /view"),
              std::string::npos);
    go_on.Notify();
    poster.join();
  }
  EXPECT_NE(posted.find("409"), std::string::npos) << posted;
  EXPECT_NE(posted.find("refused /change"), std::string::npos) << posted;
  ::rmdir(folder);
}

TEST_F(HttpServerTest, AnOverlongHeaderEndsTheConnectionOnly) {
  const std::string padding(64 * 1024, 'a');
  UniqueFd fd = ConnectTcp(address_);
  const std::string request = "GET / HTTP/1.1\r\nX: " + padding + "\r\n\r\n";
  (void)!::send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL);
  char byte;
  EXPECT_LE(::recv(fd.get(), &byte, 1, 0), 0);
  EXPECT_NE(Get("GET / HTTP/1.1\r\nConnection: close\r\n\r\n").find("200"), std::string::npos);
}

TEST(HttpServer, RefusesWhatIsNoAddress) {
  for (const char* address : {"", "9417", "localhost:9417", "127.0.0.1:70000", "127.0.0.1:x"}) {
    HttpServer server;
    const auto listening = server.ListenTcp(address, Echo);
    EXPECT_EQ(listening.status().code(), absl::StatusCode::kInvalidArgument) << address;
  }
}

TEST(HttpServer, TheUnixSocketIsForItsOwnerAndGoesWithTheServer) {
  char folder[] = "/tmp/http-XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  const std::string path = std::string(folder) + "/a.sock";
  {
    HttpServer server;
    ASSERT_TRUE(server.ListenUnix(path, Echo).ok());
    server.Start();
    HttpServer second;
    EXPECT_EQ(second.ListenUnix(path, Echo).code(), absl::StatusCode::kAlreadyExists);
    struct stat made{};
    ASSERT_EQ(::stat(path.c_str(), &made), 0);
    EXPECT_EQ(made.st_mode & 0777, 0600u);
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    std::strncpy(to.sun_path, path.c_str(), sizeof(to.sun_path) - 1);
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM, 0));
    ASSERT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
    EXPECT_NE(Exchange(fd.get(), "GET /v1/fabric HTTP/1.1\r\nConnection: close\r\n\r\n")
                  .find("you asked for /v1/fabric"),
              std::string::npos);
  }
  EXPECT_NE(::access(path.c_str(), F_OK), 0);
  ::rmdir(folder);
}

}  // namespace
}  // namespace switchyard::agent
