// SPDX-License-Identifier: Apache-2.0
// What a process that holds a device looks like from outside, in each way there is to hold one.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <csignal>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
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
}

TEST_F(KernelHolders, OfADeviceByItsGroupHasAnAnonymousFileThatNamesNoDevice) {
  const auto holder = Hold(Legacy(gpus_[0]));
  ASSERT_NE(holder, nullptr);
  EXPECT_THAT(Files(holder->pid()),
              UnorderedElementsAre("/dev/vfio/vfio", GroupNode(gpus_[0]), kAnonymous));
  EXPECT_EQ(Number(holder->pid(), kAnonymous), "0:0");
  EXPECT_TRUE(GroupIsBusy(gpus_[0]));
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
}

TEST_F(KernelHolders, ThatLeftADeviceInASocketHasNoFileOfIt) {
  const auto holder = Hold(Legacy(gpus_[0]) + Steps{"in-flight", "close=group", "close=container"});
  ASSERT_NE(holder, nullptr);
  EXPECT_THAT(Files(holder->pid()), IsEmpty());
  EXPECT_TRUE(GroupIsBusy(gpus_[0]));
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
}

TEST_F(KernelHolders, OfACdevHasItsNode) {
  const auto holder = Hold(ByCdev(gpus_[0]));
  ASSERT_NE(holder, nullptr);
  EXPECT_THAT(Files(holder->pid()), UnorderedElementsAre("/dev/iommu", CdevNode(gpus_[0])));
  EXPECT_EQ(Number(holder->pid(), CdevNode(gpus_[0])),
            Read(SysfsFolder(gpus_[0]) + "/vfio-dev/" + Cdev(gpus_[0]) + "/dev"));
  EXPECT_TRUE(GroupIsBusy(gpus_[0]));
}

// The one that opening the group does not find.
TEST_F(KernelHolders, OfACdevThatWasNeverBoundLeavesTheGroupFree) {
  const auto holder = Hold({"cdev=" + CdevNode(gpus_[0])});
  ASSERT_NE(holder, nullptr);
  EXPECT_THAT(Files(holder->pid()), ElementsAre(CdevNode(gpus_[0])));
  EXPECT_FALSE(GroupIsBusy(gpus_[0]));
}

TEST_F(KernelHolders, ThatEndedLeavesNothing) {
  auto holder = Hold(Legacy(gpus_[0]) + Steps{"map"});
  ASSERT_NE(holder, nullptr);
  ASSERT_TRUE(GroupIsBusy(gpus_[0]));
  holder.reset();
  EXPECT_FALSE(GroupIsBusy(gpus_[0]));
}

}  // namespace
}  // namespace switchyard::kernel_test
