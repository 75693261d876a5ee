// SPDX-License-Identifier: Apache-2.0
// Real processes with real open files, and planted ones for what this machine can't do. The nodes
// of GPU A are /dev/full (group) and /dev/zero (cdev), that of B is /dev/urandom.
#include "pci/holders.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cstdlib>
#include <fstream>
#include <thread>

#include "pci/testing/processes.h"

namespace switchyard::pci {
namespace {

using testing::Child;
using ::testing::ElementsAre;
using testing::FakeProc;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::NoCapabilities;
using testing::SysfsTree;

constexpr char kA[] = "0000:01:00.0";
constexpr char kB[] = "0000:02:00.0";
constexpr char kAnonymous[] = "anon_inode:[vfio-device]";
constexpr pid_t kPid = 77;  // of a planted process
constexpr unsigned kExiting = 0x400004;
constexpr unsigned kKernel = 0x208040;

PciAddress Address(const char* text) { return *PciAddress::Parse(text); }

int MustOpen(const char* path) {
  const int fd = ::open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) ::_exit(1);
  return fd;
}

void Send(int socket, int fd) {
  char byte = 'x';
  iovec part = {&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  *reinterpret_cast<int*>(CMSG_DATA(header)) = fd;
  if (::sendmsg(socket, &message, 0) != 1) ::_exit(1);
}

void Receive(int socket) {
  char byte = 0;
  iovec part = {&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  if (::recvmsg(socket, &message, 0) != 1 || CMSG_FIRSTHDR(&message) == nullptr) ::_exit(1);
}

class HoldersTest : public ::testing::Test {
 protected:
  HoldersTest() {
    tree_.AddGpu(kA, 12);
    tree_.Write("sys/class/vfio/12/dev", "1:7\n");
    tree_.SetVfio(kA, 3);
    tree_.SetFile(kA, "vfio-dev/vfio3/dev", "1:5\n");
    tree_.AddGpu(kB, 13);
    tree_.Write("sys/class/vfio/13/dev", "1:9\n");
  }

  Holders Find(const std::vector<const char*>& addresses = {kA, kB}) {
    std::vector<DeviceNodes> nodes;
    for (const char* address : addresses) {
      const Result<DeviceNodes> its = ReadDeviceNodes(tree_.root(), Address(address));
      EXPECT_TRUE(its.ok()) << its.status();
      if (its.ok()) nodes.push_back(*its);
    }
    Result<Holders> holders = FindHolders(tree_.root(), nodes);
    EXPECT_TRUE(holders.ok()) << holders.status();
    return holders.ok() ? *holders : Holders();
  }
  // "PID file" of each holder of `address`.
  static std::vector<std::string> Of(const Holders& holders, const char* address) {
    const auto it = holders.of.find(Address(address));
    return it == holders.of.end() ? std::vector<std::string>() : Texts(it->second);
  }
  static std::vector<std::string> Texts(const std::vector<Holder>& holders) {
    std::vector<std::string> texts;
    for (const Holder& holder : holders)
      texts.push_back(absl::StrCat(holder.pid, " ", holder.file));
    return texts;
  }
  static void ExpectNobody(const Holders& holders) {
    EXPECT_THAT(holders.of, IsEmpty());
    EXPECT_THAT(Texts(holders.anyones), IsEmpty());
    EXPECT_THAT(Texts(holders.unreadable), IsEmpty());
    EXPECT_FALSE(holders.MayHold(Address(kA)));
  }

  SysfsTree tree_;
  FakeProc proc_{tree_};
};

TEST_F(HoldersTest, AnOpenGroupAndAnOpenCdevHoldTheirDeviceOnly) {
  Child group([] { MustOpen("/dev/full"); });
  Child cdev([] { MustOpen("/dev/zero"); });
  proc_.Show(group.pid());
  proc_.Show(cdev.pid());
  const Holders holders = Find();
  EXPECT_THAT(Of(holders, kA),
              ::testing::UnorderedElementsAre(absl::StrCat(group.pid(), " /dev/full"),
                                              absl::StrCat(cdev.pid(), " /dev/zero")));
  EXPECT_TRUE(holders.MayHold(Address(kA)));
  EXPECT_FALSE(holders.MayHold(Address(kB)));
  EXPECT_THAT(Texts(holders.unreadable), IsEmpty());
  EXPECT_EQ(holders.of.at(Address(kA)).front().command, "pci_test");
}

TEST_F(HoldersTest, AFileIsNamedOnceHoweverOftenItIsOpen) {
  Child child([] {
    for (int i = 0; i < 3; ++i) (void)::dup(MustOpen("/dev/full"));
  });
  proc_.Show(child.pid());
  EXPECT_THAT(Of(Find(), kA), ElementsAre(absl::StrCat(child.pid(), " /dev/full")));
}

TEST_F(HoldersTest, TheFileIsTheReceiversOnceItWasPassed) {
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  Child giver([&] {
    const int fd = MustOpen("/dev/full");
    Send(pair[0], fd);
    ::close(fd);
  });
  proc_.Show(giver.pid());
  ExpectNobody(Find());  // on its way: only the kernel has it, and says EBUSY
  Child taker([&] { Receive(pair[1]); });
  proc_.Show(taker.pid());
  EXPECT_THAT(Of(Find(), kA), ElementsAre(absl::StrCat(taker.pid(), " /dev/full")));
  ::close(pair[0]);
  ::close(pair[1]);
}

TEST_F(HoldersTest, WhoHasEndedHoldsNothing) {
  Child zombie([] { MustOpen("/dev/full"); });
  Child gone([] { MustOpen("/dev/full"); });
  proc_.Show(zombie.pid());
  proc_.Show(gone.pid());
  EXPECT_EQ(Of(Find(), kA).size(), 2u);
  zombie.EndAsZombie();
  gone.End();
  ExpectNobody(Find());
}

TEST_F(HoldersTest, OtherAnonymousFilesAreNobodysDevice) {
  Child child([] {
    int pair[2];
    if (::eventfd(0, 0) < 0 || ::epoll_create1(0) < 0 || ::memfd_create("vfio-device", 0) < 0 ||
        ::socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
      ::_exit(1);
  });
  proc_.Show(child.pid());
  ExpectNobody(Find());
}

TEST_F(HoldersTest, ThreadsHoldWhatTheirFirstOneLeft) {
  int until[2];
  ASSERT_EQ(::pipe(until), 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::close(until[1]);
    MustOpen("/dev/full");
    std::thread([&] {
      char byte = 0;
      (void)!::read(until[0], &byte, 1);
      ::_exit(0);
    }).detach();
    ::syscall(SYS_exit, 0);
  }
  const std::string stat = absl::StrCat("/proc/", pid, "/stat");
  for (char state = 0; state != 'Z';) {
    std::ifstream file(stat);
    std::string text;
    std::getline(file, text);
    state = text.at(text.rfind(')') + 2);
    ::sched_yield();
  }
  proc_.Show(pid);
  EXPECT_THAT(Of(Find(), kA), ElementsAre(absl::StrCat(pid, " /dev/full")));
  ::close(until[0]);
  ::close(until[1]);
  ::waitpid(pid, nullptr, 0);
}

TEST_F(HoldersTest, AProcessWhoseFilesMayNotBeReadMayHoldAnything) {
  Child child([] { ::prctl(PR_SET_DUMPABLE, 0); });
  proc_.Show(child.pid());
  const NoCapabilities weak;
  const Holders holders = Find();
  ASSERT_EQ(holders.unreadable.size(), 1u);
  EXPECT_EQ(holders.unreadable[0].pid, child.pid());
  EXPECT_THAT(holders.unreadable[0].problem, HasSubstr("Permission denied"));
  EXPECT_TRUE(holders.MayHold(Address(kA)));
  EXPECT_TRUE(holders.MayHold(Address(kB)));
}

TEST_F(HoldersTest, AFolderOfFilesThatCantBeListedIsNotAnEmptyOne) {
  proc_.Plant(kPid, "secret");
  const std::string folder = tree_.Path(absl::StrCat("proc/", kPid, "/fd"));
  std::filesystem::permissions(folder, std::filesystem::perms::none);
  {
    const NoCapabilities weak;
    const Holders holders = Find();
    ASSERT_EQ(holders.unreadable.size(), 1u);
    EXPECT_EQ(holders.unreadable[0].command, "secret");
    EXPECT_THAT(holders.unreadable[0].problem, HasSubstr("can't be listed"));
  }
  std::filesystem::permissions(folder, std::filesystem::perms::owner_all);
}

TEST_F(HoldersTest, ThisProcessIsLeftOut) {
  const int fd = MustOpen("/dev/full");
  proc_.Show(::getpid());
  EXPECT_EQ(Of(Find(), kA).size(), 1u);
  tree_.Link("proc/self", absl::StrCat(::getpid()));
  ExpectNobody(Find());
  ::close(fd);
}

TEST_F(HoldersTest, AnAnonymousDeviceFileMayBeAnybodys) {
  proc_.Plant(kPid, "qemu");
  proc_.Open(kPid, 9, kAnonymous);
  const Holders holders = Find();
  EXPECT_THAT(holders.of, IsEmpty());
  EXPECT_THAT(Texts(holders.anyones), ElementsAre("77 anon_inode:[vfio-device]"));
  EXPECT_TRUE(holders.MayHold(Address(kB)));
}

TEST_F(HoldersTest, AnAnonymousDeviceFileIsTheOneTheKernelNames) {
  proc_.Plant(kPid, "qemu");
  proc_.Open(kPid, 9, kAnonymous,
             "pos:\t0\nvfio-device-syspath: /sys/devices/pci0000:00/0000:00:01.0/0000:02:00.0\n");
  proc_.Plant(78, "other");
  proc_.Open(78, 9, kAnonymous, "vfio-device-syspath: /sys/devices/pci0000:00/0000:05:00.0\n");
  const Holders holders = Find();
  EXPECT_THAT(Of(holders, kB), ElementsAre("77 anon_inode:[vfio-device]"));
  EXPECT_THAT(Of(holders, kA), IsEmpty());
  EXPECT_THAT(Texts(holders.anyones), IsEmpty());
}

TEST_F(HoldersTest, AnAnonymousDeviceFileBelongsToTheGroupsOfItsProcess) {
  proc_.Plant(kPid, "qemu");
  proc_.Open(kPid, 8, "/dev/urandom");
  proc_.Open(kPid, 9, kAnonymous);
  const Holders holders = Find();
  EXPECT_THAT(Of(holders, kB), ElementsAre("77 /dev/urandom", "77 anon_inode:[vfio-device]"));
  EXPECT_FALSE(holders.MayHold(Address(kA)));
  // The same process, when only the other device is asked for: it has nothing of that.
  tree_.Write("proc/devices", "Character devices:\n  1 vfio\n511 vfio-dev\n\nBlock devices:\n");
  ExpectNobody(Find({kA}));
}

TEST_F(HoldersTest, AVfioNodeThatIsGoneFromSysfsMayBeAnybodys) {
  tree_.Write("proc/devices", "Character devices:\n  1 vfio\n511 vfio-dev\n\nBlock devices:\n");
  proc_.Plant(kPid, "qemu");
  proc_.Open(kPid, 8, "/dev/random");
  EXPECT_THAT(Texts(Find().anyones), ElementsAre("77 /dev/random"));
  tree_.Write("sys/class/vfio-dev/vfio8/dev", "1:8\n");
  ExpectNobody(Find());
}

TEST_F(HoldersTest, WhoExitsMayHoldAnythingUntilItIsOver) {
  proc_.Plant(kPid, "qemu", 'D', kExiting);
  const Holders holders = Find();
  ASSERT_EQ(holders.unreadable.size(), 1u);
  EXPECT_THAT(holders.unreadable[0].problem, HasSubstr("exiting"));
  proc_.Plant(kPid, "qemu", 'Z', kExiting);
  ExpectNobody(Find());
  proc_.Plant(kPid, "idle", 'S');  // a process without files
  ExpectNobody(Find());
  proc_.Plant(kPid, "kworker", 'I', kKernel);
  ExpectNobody(Find());
}

TEST_F(HoldersTest, TheLastThreadThatExitsCounts) {
  proc_.Plant(kPid, "qemu", 'Z', kExiting, 2);
  proc_.PlantThread(kPid, kPid, 'Z', kExiting);
  proc_.PlantThread(kPid, 78, 'D', kExiting);
  EXPECT_EQ(Find().unreadable.size(), 1u);
  proc_.PlantThread(kPid, 78, 'Z', kExiting);
  ExpectNobody(Find());
}

TEST_F(HoldersTest, CommandAndCgroupAreTheProcesss) {
  proc_.Plant(kPid, "qemu-system-x86");
  proc_.Open(kPid, 8, "/dev/full");
  EXPECT_EQ(Find().of.at(Address(kA)), std::vector<Holder>({{.pid = kPid,
                                                             .command = "qemu-system-x86",
                                                             .cgroup = "/of/qemu-system-x86",
                                                             .file = "/dev/full",
                                                             .problem = ""}}));
}

TEST_F(HoldersTest, WithoutTheHostsProcessesThereIsNoAnswer) {
  std::filesystem::remove_all(tree_.Path("proc/1"));
  tree_.Link("proc/1/ns/pid", "pid:[4026532741]");
  EXPECT_TRUE(absl::IsFailedPrecondition(FindHolders(tree_.root(), {}).status()));
}

TEST_F(HoldersTest, TheNodesOfADeviceAreItsGroupsWithAllCdevs) {
  tree_.AddFunction({.address = "0000:01:00.1", .class_code = testing::kClassAudio, .group = 12});
  tree_.SetVfio("0000:01:00.1", 4);
  EXPECT_THAT(ReadDeviceNodes(tree_.root(), Address(kA))->numbers,
              ElementsAre(makedev(1, 7), makedev(1, 5), makedev(511, 4)));
  std::filesystem::remove_all(tree_.Path("sys/class/vfio"));
  tree_.SetVfio(kA, std::nullopt);
  tree_.SetVfio("0000:01:00.1", std::nullopt);
  EXPECT_THAT(ReadDeviceNodes(tree_.root(), Address(kA))->numbers, IsEmpty());
  EXPECT_TRUE(absl::IsNotFound(ReadDeviceNodes(tree_.root(), Address("0000:09:00.0")).status()));
  tree_.Write("sys/class/vfio/12/dev", "1-7\n");
  EXPECT_TRUE(absl::IsInvalidArgument(ReadDeviceNodes(tree_.root(), Address(kA)).status()));
}

// A terminal that somebody has for himself alone (TIOCEXCL): opening it is EBUSY, as with a group.
TEST_F(HoldersTest, AGroupIsBusyWhileTheKernelSaysSo) {
  const int master = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  ASSERT_TRUE(::grantpt(master) == 0 && ::unlockpt(master) == 0);
  const char* terminal = ::ptsname(master);
  struct stat info = {};
  ASSERT_EQ(::stat(terminal, &info), 0);
  tree_.Link("dev/vfio/12", terminal);
  tree_.Write("sys/class/vfio/12/dev",
              absl::StrCat(major(info.st_rdev), ":", minor(info.st_rdev), "\n"));
  const NoCapabilities weak;  // root may open it all the same
  Result<bool> busy = GroupIsBusy(tree_.root(), 12);
  ASSERT_TRUE(busy.ok()) << busy.status();
  EXPECT_FALSE(*busy);

  const int owner = ::open(terminal, O_RDWR | O_NOCTTY | O_CLOEXEC);
  ASSERT_EQ(::ioctl(owner, TIOCEXCL), 0);
  busy = GroupIsBusy(tree_.root(), 12);
  ASSERT_TRUE(busy.ok()) << busy.status();
  EXPECT_TRUE(*busy);
  ::close(owner);
  ::close(master);
}

TEST_F(HoldersTest, ANodeThatIsNotTheGroupsIsNoAnswer) {
  EXPECT_TRUE(absl::IsNotFound(GroupIsBusy(tree_.root(), 99).status()));  // no vfio driver there
  const Status missing = GroupIsBusy(tree_.root(), 12).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(missing));
  EXPECT_THAT(std::string(missing.message()), HasSubstr("mount the host's /dev"));
  tree_.Link("dev/vfio/12", "/dev/zero");
  const Status wrong = GroupIsBusy(tree_.root(), 12).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(wrong));
  EXPECT_THAT(std::string(wrong.message()), HasSubstr("is device 1:5"));
  tree_.Write("sys/class/vfio/12/dev", "1:5\n");
  EXPECT_TRUE(GroupIsBusy(tree_.root(), 12).ok());
  std::filesystem::remove_all(tree_.Path("sys/class/vfio/12"));
  EXPECT_TRUE(absl::IsFailedPrecondition(GroupIsBusy(tree_.root(), 12).status()));
}

}  // namespace
}  // namespace switchyard::pci
