// SPDX-License-Identifier: Apache-2.0
#include "sim/node/control_socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "absl/synchronization/notification.h"

namespace switchyard::sim {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

class ControlSocketTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/cs.XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    dir_ = folder;
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }
  std::string path() const { return dir_ + "/s"; }
  void Start(ControlServer::Handler handler) {
    auto server = ControlServer::Start(path(), std::move(handler));
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  std::string dir_;
  std::unique_ptr<ControlServer> server_;
};

TEST_F(ControlSocketTest, AnswersAndErrorsComeBack) {
  Start([](const Json& request) -> Result<Json> {
    if (request.contains("bad")) return absl::NotFoundError("there is no such thing");
    return Json{{"echo", request["say"]}};
  });
  const Result<Json> answer = AskSimulator(path(), {{"say", "hello"}});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ((*answer)["echo"], "hello");
  EXPECT_EQ(AskSimulator(path(), {{"bad", 1}}).status().message(), "there is no such thing");
}

TEST_F(ControlSocketTest, NobodyThereSaysWhatToDo) {
  const Result<Json> answer = AskSimulator(path(), Json::object());
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(answer.status().message()), HasSubstr("switchyard-sim up"));
}

TEST_F(ControlSocketTest, WhatIsNoRequestIsRefused) {
  Start([](const Json&) -> Result<Json> { return Json(1); });
  EXPECT_FALSE(AskSimulator(path(), Json::array()).ok());
  EXPECT_FALSE(AskSimulator(path(), {{"long", std::string(100'000, 'x')}}).ok());
  EXPECT_TRUE(AskSimulator(path(), Json::object()).ok());
}

TEST_F(ControlSocketTest, ASlowRequestHoldsNobodyUp) {
  absl::Notification slow_started;
  absl::Notification go_on;
  Start([&](const Json& request) -> Result<Json> {
    if (request.contains("slow")) {
      slow_started.Notify();
      go_on.WaitForNotification();
    }
    return Json(1);
  });
  std::thread slow([this] { EXPECT_TRUE(AskSimulator(path(), {{"slow", 1}}).ok()); });
  slow_started.WaitForNotification();
  EXPECT_TRUE(AskSimulator(path(), Json::object()).ok());
  go_on.Notify();
  slow.join();
}

TEST_F(ControlSocketTest, SixteenAtATime) {
  Start([](const Json&) -> Result<Json> { return Json(1); });
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 16; ++i) {
    silent.emplace_back(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path().data(), path().size());
    ASSERT_EQ(connect(silent.back().get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)),
              0);
  }
  EXPECT_THAT(std::string(AskSimulator(path(), Json::object()).status().message()),
              HasSubstr("try again"));
  server_.reset();  // ends although sixteen have not spoken yet
}

TEST_F(ControlSocketTest, TheSocketGoesWithTheServer) {
  Start([](const Json&) -> Result<Json> { return Json(1); });
  EXPECT_TRUE(std::filesystem::exists(path()));
  server_.reset();
  EXPECT_FALSE(std::filesystem::exists(path()));
}

}  // namespace
}  // namespace switchyard::sim
