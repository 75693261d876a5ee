// SPDX-License-Identifier: Apache-2.0
#include "apps/operator_client.h"

#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <thread>

#include "agent/http_server.h"
#include "apps/fabric_state.h"
#include "apps/testing/run_program.h"
#include "base/unique_fd.h"

namespace switchyard::apps {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

// Listens, and to whoever comes sends `answer` and closes; silent if it is empty.
class RawServer {
 public:
  RawServer(const std::string& path, std::string answer)
      : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
    EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(::listen(fd_.get(), 1), 0);
    if (answer.empty()) return;
    thread_ = std::thread([this, answer = std::move(answer)] {
      const UniqueFd peer(::accept(fd_.get(), nullptr, nullptr));
      char request[4096];
      EXPECT_GT(::recv(peer.get(), request, sizeof(request), 0), 0);
      EXPECT_EQ(::send(peer.get(), answer.data(), answer.size(), MSG_NOSIGNAL),
                static_cast<ssize_t>(answer.size()));
    });
  }
  ~RawServer() {
    if (thread_.joinable()) thread_.join();
  }

 private:
  UniqueFd fd_;
  std::thread thread_;
};

TEST(OperatorClientTest, AsksTheAgentsOwnServer) {
  const TemporaryFolder folder;
  const std::string socket = folder.Path("a.sock");
  const std::string large(2 * 1024 * 1024, 'x');
  agent::HttpServer server;
  ASSERT_TRUE(server
                  .ListenUnix(socket,
                              [&](const agent::HttpRequest& request) {
                                if (request.target == "/large")
                                  return agent::HttpResponse{200, "", large};
                                if (request.target == "/v1/fabric")
                                  return agent::HttpResponse{200, "", "hello"};
                                return agent::HttpResponse{404, "", "no"};
                              })
                  .ok());
  server.Start();
  const OperatorClient client{socket};
  EXPECT_EQ(*client.Get("/v1/fabric"), "hello");
  EXPECT_EQ(*client.Get("/large"), large);
  const auto missing = client.Get("/other");
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(missing.status().message(), HasSubstr("status 404"));
}

TEST(OperatorClientTest, NobodyListensIsNotFound) {
  const TemporaryFolder folder;
  EXPECT_TRUE(absl::IsNotFound(OperatorClient{folder.Path("a.sock")}.Get("/").status()));
  folder.Write("b.sock", "");  // a file that is no socket
  EXPECT_TRUE(absl::IsNotFound(OperatorClient{folder.Path("b.sock")}.Get("/").status()));
}

TEST(OperatorClientTest, ASilentAgentIsGivenUp) {
  const TemporaryFolder folder;
  const RawServer server(folder.Path("a.sock"), "");
  const OperatorClient client{folder.Path("a.sock"), absl::Milliseconds(50)};
  EXPECT_EQ(client.Get("/").status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(OperatorClientTest, NoHttpTooMuchAndCutShortAreErrors) {
  for (const std::string& answer :
       {std::string("SSH-2.0-OpenSSH\r\n\r\n"),
        std::string("HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n"),
        std::string("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")}) {
    const TemporaryFolder folder;
    const RawServer server(folder.Path("a.sock"), answer);
    const OperatorClient client{folder.Path("a.sock")};
    EXPECT_EQ(client.Get("/").status().code(), absl::StatusCode::kInternal) << answer;
  }
}

constexpr char kFabric[] = R"({"mode":"advise","known":true,"up":false,"error":"down",
  "readAt":"2026-01-02T03:04:05Z",
  "partitions":[{"id":3,"active":true,"modules":[1,3],"complete":true},
                {"id":9,"active":false,"modules":[4],"complete":false}],
  "map":[{"address":"0000:0f:00.0","module":3,"sources":["file","fm"],"origin":"/m.json"}],
  "mapErrors":["e"],"busy":[1],"usable":[1,3],"numaNodes":{"1":0,"3":1}})";

TEST(FabricStateTest, ReadsTheAgentsDocument) {
  const auto state = ParseFabricState(kFabric);
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_TRUE(state->live);
  EXPECT_EQ(state->mode, "advise");
  EXPECT_EQ(state->error, "down");
  EXPECT_EQ(absl::ToUnixSeconds(state->read_at), 1767323045);
  ASSERT_EQ(state->table.partitions.size(), 2u);
  EXPECT_TRUE(state->table.partitions[0].active);
  EXPECT_FALSE(state->table.partitions[1].complete);
  EXPECT_EQ(state->table.modules, (fabric::ModuleSet{1, 3, 4}));
  const MapEntry& entry = state->map.at(*PciAddress::Parse("0f:00.0"));
  EXPECT_EQ(entry.module, 3);
  EXPECT_THAT(entry.sources, ElementsAre("file", "fm"));
  EXPECT_EQ(state->busy, fabric::ModuleSet{1});
  EXPECT_EQ(state->usable, (fabric::ModuleSet{1, 3}));
  EXPECT_EQ(state->numa_node[3], 1);
  EXPECT_EQ(state->numa_node[2], -1);
  EXPECT_EQ(AgeText(*state, state->read_at + absl::Seconds(90)),
            "Fabric Manager is away; read 1m30s ago");
}

TEST(FabricStateTest, RefusesWhatIsNoSuchDocument) {
  for (const char* text : {"", "[]", "{}", "{\"mode\":1}", "nonsense"}) {
    EXPECT_EQ(ParseFabricState(text).status().code(), absl::StatusCode::kInternal) << text;
  }
  for (const auto& [from, to] :
       {std::pair("[1,3],\"complete", "[1,17],\"complete"),
        std::pair("\"busy\":[1]", "\"busy\":[0]"), std::pair("{\"1\":0", "{\"99\":0"),
        std::pair("{\"1\":0", "{\"-1\":0"), std::pair("2026-01", "soon")}) {
    std::string broken = kFabric;
    broken.replace(broken.find(from), std::strlen(from), to);
    EXPECT_EQ(ParseFabricState(broken).status().code(), absl::StatusCode::kInternal) << to;
  }
}

}  // namespace
}  // namespace switchyard::apps
