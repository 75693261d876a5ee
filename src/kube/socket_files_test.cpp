// SPDX-License-Identifier: Apache-2.0
#include "kube/socket_files.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"

namespace switchyard::kube {
namespace {

class SocketFilesTest : public ::testing::Test {
 protected:
  SocketFilesTest() {
    std::string folder = "/tmp/sockets-XXXXXX";
    folder_ = ::mkdtemp(folder.data());
  }
  ~SocketFilesTest() override { std::filesystem::remove_all(folder_); }

  UniqueFd Listen(const std::string& name) {
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = folder_ + "/" + name;
    std::memcpy(address.sun_path, path.data(), path.size());
    EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(::listen(fd.get(), 1), 0);
    return fd;
  }

  std::string folder_;
};

TEST_F(SocketFilesTest, NamesDifferAndStayShort) {
  const std::string resource = "nvidia.com/" + std::string(63, 'X');
  const std::string a = NewSocketName(resource);
  EXPECT_NE(a, NewSocketName(resource));
  EXPECT_TRUE(absl::StartsWith(a, "switchyard-XXX")) << a;
  EXPECT_LE(a.size() + sizeof("/var/lib/kubelet/device-plugins"), kMaxSocketPath);
}

TEST_F(SocketFilesTest, RemovesOnlyDeadSocketsOfOurs) {
  {
    (void)Listen("switchyard-dead-1.sock");
  }
  {
    (void)Listen("other.sock");
  }
  const UniqueFd alive = Listen("switchyard-alive-2.sock");
  std::ofstream(folder_ + "/switchyard-file.sock") << "no socket";
  EXPECT_EQ(RemoveDeadSockets(folder_), 1);
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/switchyard-dead-1.sock"));
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/other.sock"));
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/switchyard-alive-2.sock"));
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/switchyard-file.sock"));
}

TEST_F(SocketFilesTest, ANewSocketUnderTheSameNameIsAnother) {
  EXPECT_EQ(StatSocket(folder_ + "/a.sock"), std::nullopt);
  {
    (void)Listen("a.sock");
  }
  const auto first = StatSocket(folder_ + "/a.sock");
  ASSERT_TRUE(first.has_value());
  std::filesystem::permissions(folder_ + "/a.sock", std::filesystem::perms::owner_all);
  EXPECT_EQ(StatSocket(folder_ + "/a.sock"), first);
  std::filesystem::remove(folder_ + "/a.sock");
  const UniqueFd again = Listen("a.sock");
  EXPECT_NE(StatSocket(folder_ + "/a.sock"), first);
}

TEST_F(SocketFilesTest, WatchSeesSocketsAndNothingElse) {
  SocketWatch watch(folder_);
  watch.Arm();
  std::ofstream(folder_ + "/kubelet_internal_checkpoint") << "x";
  EXPECT_FALSE(watch.Drain());
  const UniqueFd kubelet = Listen("kubelet.sock");
  EXPECT_TRUE(watch.Drain());
  EXPECT_FALSE(watch.Drain());
  std::filesystem::remove(folder_ + "/kubelet.sock");
  EXPECT_TRUE(watch.Drain());
}

TEST_F(SocketFilesTest, WatchSurvivesANewFolder) {
  SocketWatch watch(folder_);
  watch.Arm();
  std::filesystem::remove_all(folder_);
  EXPECT_TRUE(watch.Drain());
  watch.Arm();  // nothing there
  std::filesystem::create_directory(folder_);
  watch.Arm();
  const UniqueFd kubelet = Listen("kubelet.sock");
  EXPECT_TRUE(watch.Drain());
}

}  // namespace
}  // namespace switchyard::kube
