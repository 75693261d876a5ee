// SPDX-License-Identifier: Apache-2.0
// Against the real kernel: as root, in a network namespace of the test's own, a message with a
// netlink header sent to the kernel comes back to every listener as the kernel's own event
// (uevent_net_rcv_skb in lib/kobject_uevent.c), so nobody else on the machine sees it.
#include "pci/uevents.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/netlink.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <thread>

#include "absl/strings/str_cat.h"

namespace switchyard::pci {
namespace {

// The text of an event; NULs between the fields.
std::string EventText(absl::string_view subsystem) {
  std::string text = "add@/devices/pci0000:00/0000:19:00.0";
  for (const std::string& field :
       {std::string("ACTION=add"), std::string("DEVPATH=/devices/pci0000:00/0000:19:00.0"),
        absl::StrCat("SUBSYSTEM=", subsystem)}) {
    text.push_back('\0');
    text += field;
  }
  text.push_back('\0');
  return text;
}

class Sender {
 public:
  Sender() : fd_(::socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_KOBJECT_UEVENT)) {}

  // Through the kernel; false if it refused (only the test's root may).
  [[nodiscard]] bool AsKernel(absl::string_view subsystem) const {
    const std::string text = EventText(subsystem);
    nlmsghdr header = {};
    header.nlmsg_len = static_cast<std::uint32_t>(NLMSG_HDRLEN + text.size());
    header.nlmsg_type = NLMSG_MIN_TYPE;
    header.nlmsg_flags = NLM_F_REQUEST;
    std::string message(reinterpret_cast<const char*>(&header), sizeof(header));
    message += text;
    return Send(message, 0);
  }

  // Straight to a socket, as any process with CAP_NET_ADMIN can.
  [[nodiscard]] bool AsProcess(absl::string_view subsystem, int to) const {
    sockaddr_nl address = {};
    socklen_t size = sizeof(address);
    ::getsockname(to, reinterpret_cast<sockaddr*>(&address), &size);
    return Send(EventText(subsystem), address.nl_pid);
  }

 private:
  [[nodiscard]] bool Send(const std::string& message, std::uint32_t port) const {
    sockaddr_nl to = {};
    to.nl_family = AF_NETLINK;
    to.nl_pid = port;
    return ::sendto(fd_.get(), message.data(), message.size(), 0,
                    reinterpret_cast<const sockaddr*>(&to),
                    sizeof(to)) == static_cast<ssize_t>(message.size());
  }

  UniqueFd fd_;
};

bool Readable(const UeventSocket& socket) {
  pollfd poll = {.fd = socket.fd(), .events = POLLIN, .revents = 0};
  return ::poll(&poll, 1, 0) == 1;
}

// Runs `body` in a network namespace that ends with it.
class UeventsTest : public ::testing::Test {
 protected:
  void InNamespace(const std::function<void(UeventSocket&, const Sender&)>& body) {
    bool alone = false;
    std::thread([&] {
      alone = ::unshare(CLONE_NEWNET) == 0;
      if (!alone) return;
      Result<UeventSocket> socket = UeventSocket::Open();
      ASSERT_TRUE(socket.ok()) << socket.status();
      body(*socket, Sender());
    }).join();
    if (alone) return;
    GTEST_SKIP() << "needs a network namespace: run the tests as root";
  }
};

TEST_F(UeventsTest, SilenceIsNoReasonToScan) {
  InNamespace([](UeventSocket& quiet, const Sender&) { EXPECT_FALSE(quiet.DrainAndCheck()); });
}

TEST_F(UeventsTest, HearsTheSubsystemsOfADevice) {
  InNamespace([](UeventSocket& socket, const Sender& sender) {
    for (const char* subsystem : {"pci", "vfio", "vfio-dev", "iommu", "misc"}) {
      ASSERT_TRUE(sender.AsKernel(subsystem)) << std::strerror(errno);
      EXPECT_TRUE(Readable(socket)) << subsystem;
      EXPECT_TRUE(socket.DrainAndCheck()) << subsystem;
      EXPECT_FALSE(socket.DrainAndCheck()) << "drained";
    }
  });
}

TEST_F(UeventsTest, OtherSubsystemsAreDrainedAndIgnored) {
  InNamespace([](UeventSocket& socket, const Sender& sender) {
    for (const char* subsystem : {"net", "pci_express", "block", ""})
      ASSERT_TRUE(sender.AsKernel(subsystem)) << std::strerror(errno);
    EXPECT_FALSE(socket.DrainAndCheck());
    EXPECT_FALSE(Readable(socket));
  });
}

TEST_F(UeventsTest, OneOfOursAmongOthersIsEnough) {
  InNamespace([](UeventSocket& socket, const Sender& sender) {
    for (const char* subsystem : {"net", "pci", "block"})
      ASSERT_TRUE(sender.AsKernel(subsystem)) << std::strerror(errno);
    EXPECT_TRUE(socket.DrainAndCheck());
    EXPECT_FALSE(Readable(socket));
  });
}

TEST_F(UeventsTest, AProcessCannotPassForTheKernel) {
  InNamespace([](UeventSocket& socket, const Sender& sender) {
    ASSERT_TRUE(sender.AsProcess("pci", socket.fd())) << std::strerror(errno);
    EXPECT_TRUE(Readable(socket));
    EXPECT_FALSE(socket.DrainAndCheck());
    EXPECT_FALSE(Readable(socket));
  });
}

TEST_F(UeventsTest, LostEventsAreAReasonToScan) {
  InNamespace([](UeventSocket& socket, const Sender& sender) {
    const int smallest = 0;
    ASSERT_EQ(::setsockopt(socket.fd(), SOL_SOCKET, SO_RCVBUF, &smallest, sizeof(smallest)), 0);
    for (int i = 0; i < 50; ++i) (void)sender.AsKernel("net");  // none of ours
    EXPECT_TRUE(socket.DrainAndCheck());
    EXPECT_FALSE(socket.DrainAndCheck());
  });
}

TEST_F(UeventsTest, AFloodIsReadInParts) {
  InNamespace([](UeventSocket& socket, const Sender& sender) {
    const int large = 16 << 20;
    ASSERT_EQ(::setsockopt(socket.fd(), SOL_SOCKET, SO_RCVBUFFORCE, &large, sizeof(large)), 0);
    for (int i = 0; i < 1100; ++i) ASSERT_TRUE(sender.AsKernel("net")) << std::strerror(errno);
    EXPECT_TRUE(socket.DrainAndCheck());
    EXPECT_TRUE(Readable(socket));
    EXPECT_FALSE(socket.DrainAndCheck());
  });
}

}  // namespace
}  // namespace switchyard::pci
