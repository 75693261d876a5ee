// SPDX-License-Identifier: Apache-2.0
// What a process that holds a device looks like from outside, in each way there is to hold one: in
// /proc as this test reads it, and in the product's own words.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "pci/holders.h"
#include "tests/kernel/guest.h"

namespace switchyard::kernel_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;
using Steps = std::vector<std::string>;

constexpr char kAnonymous[] = "anon_inode:[vfio-device]";

class KernelHolders : public Fixture {
 protected:
  // Targets of /proc/PID/fd that have to do with VFIO.
  static std::vector<std::string> Files(pid_t pid) {
    std::vector<std::string> files;
    const std::string folder = absl::StrCat("/proc/", pid, "/fd");
    for (const std::string& fd : Names(folder)) {
      std::error_code error;
      const std::string target = std::filesystem::read_symlink(folder + "/" + fd, error).string();
      if (absl::StrContains(target, "vfio-device") || absl::StartsWith(target, "/dev/vfio") ||
          target == "/dev/iommu")
        files.push_back(target);
    }
    return files;
  }
  // "253:0", as sysfs writes it, of the file behind the first descriptor with this target.
  static std::string Number(pid_t pid, const std::string& target) {
    const std::string folder = absl::StrCat("/proc/", pid, "/fd");
    for (const std::string& fd : Names(folder)) {
      std::error_code error;
      if (std::filesystem::read_symlink(folder + "/" + fd, error).string() != target) continue;
      struct stat status = {};
      EXPECT_EQ(::stat((folder + "/" + fd).c_str(), &status), 0);
      return absl::StrCat(major(status.st_rdev), ":", minor(status.st_rdev));
    }
    return "";
  }
  static std::string Maps(pid_t pid) { return Read(absl::StrCat("/proc/", pid, "/maps")); }
  // What the product finds of a device: files of holders that are the device's for certain, those
  // that may be anybody's, and whether the group is busy.
  struct Found {
    Steps certain;
    Steps anyones;
    bool busy = false;
    std::set<pid_t> pids;
  };
  static Found Find(const std::string& address) {
    const HostRoot root("/");
    const PciAddress parsed = PciAddress::Parse(address).value();
    const Result<pci::DeviceNodes> nodes = pci::ReadDeviceNodes(root, parsed);
    EXPECT_TRUE(nodes.ok()) << nodes.status();
    if (!nodes.ok()) return {};
    return Find(*nodes, address);
  }
  static Found Find(const pci::DeviceNodes& nodes, const std::string& address) {
    const HostRoot root("/");
    const Result<pci::Holders> holders = pci::FindHolders(root, {&nodes, 1});
    const Result<bool> busy = pci::GroupIsBusy(root, Group(address));
    EXPECT_TRUE(holders.ok()) << holders.status();
    EXPECT_TRUE(busy.ok()) << busy.status();
    if (!holders.ok() || !busy.ok()) return {};
    EXPECT_THAT(holders->unreadable, IsEmpty());
    Found found = {.certain = {}, .anyones = {}, .busy = *busy, .pids = {}};
    const auto of = holders->of.find(nodes.address);
    if (of != holders->of.end()) {
      for (const pci::Holder& holder : of->second) {
        EXPECT_EQ(holder.command, "vfio_open");
        found.certain.push_back(holder.file);
        found.pids.insert(holder.pid);
      }
    }
    for (const pci::Holder& holder : holders->anyones) {
      EXPECT_EQ(holder.command, "vfio_open");
      found.anyones.push_back(holder.file);
      found.pids.insert(holder.pid);
    }
    return found;
  }
  static void ExpectFound(const Found& found, const Steps& certain, const Steps& anyones,
                          bool busy) {
    EXPECT_THAT(found.certain, ::testing::UnorderedElementsAreArray(certain));
    EXPECT_THAT(found.anyones, ::testing::UnorderedElementsAreArray(anyones));
    EXPECT_EQ(found.busy, busy);
  }
  static bool GroupIsBusy(const std::string& address) {
    return TryToOpen({"group=" + GroupNode(address)}) == Steps{"group EBUSY"};
  }
};

TEST_F(KernelHolders, OfAGroupHasItsNode) {
  const auto holder = Hold({"group=" + GroupNode(gpus_[0])});
  ASSERT_NE(holder, nullptr);
  EXPECT_THAT(Files(holder->pid()), ElementsAre(GroupNode(gpus_[0])));
  EXPECT_EQ(Number(holder->pid(), GroupNode(gpus_[0])),
            Read(absl::StrCat("/sys/class/vfio/", Group(gpus_[0]), "/dev")));
  EXPECT_TRUE(GroupIsBusy(gpus_[0]));
  const Found found = Find(gpus_[0]);
  ExpectFound(found, {GroupNode(gpus_[0])}, {}, true);
  EXPECT_THAT(found.pids, ElementsAre(holder->pid()));
  ExpectFound(Find(gpus_[1]), {}, {}, false);
}

TEST_F(KernelHolders, OfADeviceByItsGroupHasAnAnonymousFileThatNamesNoDevice) {
  const auto holder = Hold(Legacy(gpus_[0]));
  ASSERT_NE(holder, nullptr);
  EXPECT_THAT(Files(holder->pid()),
              UnorderedElementsAre("/dev/vfio/vfio", GroupNode(gpus_[0]), kAnonymous));
  EXPECT_EQ(Number(holder->pid(), kAnonymous), "0:0");
  EXPECT_TRUE(GroupIsBusy(gpus_[0]));
  ExpectFound(Find(gpus_[0]), {GroupNode(gpus_[0]), kAnonymous}, {}, true);
  ExpectFound(Find(gpus_[1]), {}, {}, false);
}

TEST_F(KernelHolders, OfADeviceAloneKeepsItsGroupBusy) {
  const auto holder = Hold(Legacy(gpus_[0]) + Steps{"close=group"});
  ASSERT_NE(holder, nullptr);
  EXPECT_THAT(Files(holder->pid()), UnorderedElementsAre("/dev/vfio/vfio", kAnonymous));
  EXPECT_TRUE(GroupIsBusy(gpus_[0]));
  const auto barest = Hold(Legacy(gpus_[1]) + Steps{"close=group", "close=container"});
  ASSERT_NE(barest, nullptr);
  EXPECT_THAT(Files(barest->pid()), ElementsAre(kAnonymous));
  EXPECT_TRUE(GroupIsBusy(gpus_[1]));
  ExpectFound(Find(gpus_[1]), {}, {kAnonymous, kAnonymous}, true);
  ExpectFound(Find(gpus_[2]), {}, {kAnonymous, kAnonymous}, false);
}

TEST_F(KernelHolders, ThatWasPassedADeviceHasTheAnonymousFileOnly) {
  const auto giver = Hold(Legacy(gpus_[0]) + Steps{"pass", "close=group", "close=container"});
  ASSERT_NE(giver, nullptr);
  const std::string line = giver->WaitForLine("passed to ", kPatience).value_or("");
  pid_t holder = 0;
  ASSERT_TRUE(absl::SimpleAtoi(line.substr(line.rfind(' ') + 1), &holder)) << line;
  EXPECT_THAT(Files(giver->pid()), IsEmpty());
  EXPECT_THAT(Files(holder), ElementsAre(kAnonymous));
  EXPECT_TRUE(GroupIsBusy(gpus_[0]));
  const Found found = Find(gpus_[0]);
  ExpectFound(found, {}, {kAnonymous}, true);
  EXPECT_THAT(found.pids, ElementsAre(holder));
}

TEST_F(KernelHolders, ThatLeftADeviceInASocketHasNoFileOfIt) {
  const auto holder = Hold(Legacy(gpus_[0]) + Steps{"in-flight", "close=group", "close=container"});
  ASSERT_NE(holder, nullptr);
  EXPECT_THAT(Files(holder->pid()), IsEmpty());
  EXPECT_TRUE(GroupIsBusy(gpus_[0]));
  ExpectFound(Find(gpus_[0]), {}, {}, true);
}

TEST_F(KernelHolders, OfAMappingAloneHasNoFileOfIt) {
  const auto holder =
      Hold(Legacy(gpus_[0]) + Steps{"map", "close=device", "close=group", "close=container"});
  ASSERT_NE(holder, nullptr);
  EXPECT_THAT(Files(holder->pid()), IsEmpty());
  EXPECT_THAT(Maps(holder->pid()), HasSubstr(kAnonymous));
  EXPECT_TRUE(GroupIsBusy(gpus_[0]));
  const std::string cdev = CdevNode(gpus_[1]);
  const auto by_cdev = Hold(ByCdev(gpus_[1]) + Steps{"map", "close=device", "close=iommufd"});
  ASSERT_NE(by_cdev, nullptr);
  EXPECT_THAT(Files(by_cdev->pid()), IsEmpty());
  EXPECT_THAT(Maps(by_cdev->pid()), HasSubstr(cdev));
  EXPECT_TRUE(GroupIsBusy(gpus_[1]));
  ExpectFound(Find(gpus_[0]), {}, {}, true);
  ExpectFound(Find(gpus_[1]), {}, {}, true);
}

TEST_F(KernelHolders, OfACdevHasItsNode) {
  const auto holder = Hold(ByCdev(gpus_[0]));
  ASSERT_NE(holder, nullptr);
  EXPECT_THAT(Files(holder->pid()), UnorderedElementsAre("/dev/iommu", CdevNode(gpus_[0])));
  EXPECT_EQ(Number(holder->pid(), CdevNode(gpus_[0])),
            Read(SysfsFolder(gpus_[0]) + "/vfio-dev/" + Cdev(gpus_[0]) + "/dev"));
  EXPECT_TRUE(GroupIsBusy(gpus_[0]));
  ExpectFound(Find(gpus_[0]), {CdevNode(gpus_[0])}, {}, true);
}

// The one that opening the group does not find.
TEST_F(KernelHolders, OfACdevThatWasNeverBoundLeavesTheGroupFree) {
  const auto holder = Hold({"cdev=" + CdevNode(gpus_[0])});
  ASSERT_NE(holder, nullptr);
  EXPECT_THAT(Files(holder->pid()), ElementsAre(CdevNode(gpus_[0])));
  EXPECT_FALSE(GroupIsBusy(gpus_[0]));
  ExpectFound(Find(gpus_[0]), {CdevNode(gpus_[0])}, {}, false);
}

// The kernel removes the cdev before it waits: only the number of before tells whose it is.
TEST_F(KernelHolders, OfACdevThatIsBeingTakenAwayIsFoundByItsFormerNumber) {
  const pci::DeviceNodes before =
      pci::ReadDeviceNodes(HostRoot("/"), PciAddress::Parse(gpus_[0]).value()).value();
  const std::string node = CdevNode(gpus_[0]);
  std::unique_ptr<sim::Process> holder = Hold(ByCdev(gpus_[0]));
  ASSERT_NE(holder, nullptr);
  Events events;
  Writer unbind("/sys/bus/pci/drivers/vfio-pci/unbind", gpus_[0]);
  events.WaitFor({"remove@", gpus_[0] + "/vfio-dev/"});
  EXPECT_FALSE(Exists(node));
  ExpectFound(Find(before, gpus_[0]), {node + " (deleted)"}, {}, true);
  ExpectFound(Find(gpus_[0]), {}, {node + " (deleted)"}, true);
  holder.reset();
  EXPECT_EQ(unbind.Wait(), 0);
}

TEST_F(KernelHolders, ThatEndedLeavesNothing) {
  auto holder = Hold(Legacy(gpus_[0]) + Steps{"map"});
  ASSERT_NE(holder, nullptr);
  ASSERT_TRUE(GroupIsBusy(gpus_[0]));
  holder.reset();
  EXPECT_FALSE(GroupIsBusy(gpus_[0]));
  ExpectFound(Find(gpus_[0]), {}, {}, false);
}

}  // namespace
}  // namespace switchyard::kernel_test
