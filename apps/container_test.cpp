// SPDX-License-Identifier: Apache-2.0
#include "apps/container.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace switchyard::apps {
namespace {

// A proc(5) as a container with the host's PIDs sees it: its own cgroup is the root of its cgroup
// namespace, another pod's lies beside it.
class ContainerTest : public testing::Test {
 protected:
  ContainerTest() {
    char name[] = "/tmp/proc-XXXXXX";
    proc_ = ::mkdtemp(name);
    lock_ = proc_ + "/agent.lock";
    std::ofstream(lock_) << "12\n";
    Add("self", "switchyard", "0::/\n");
    Add("12", "switchyard", "0::/\n");
    Add("40", "switchyard-wait", "0::/../../pod2/c\n");
    std::filesystem::create_directory(proc_ + "/sys");
  }
  ~ContainerTest() override { std::filesystem::remove_all(proc_); }

  void Add(const std::string& pid, const std::string& comm, const std::string& cgroup) {
    const std::string folder = absl::StrCat(proc_, "/", pid);
    std::filesystem::create_directories(folder + "/fd");
    std::filesystem::create_symlink("/dev/null", folder + "/fd/0");
    std::filesystem::create_symlink(lock_, folder + "/fd/3");
    std::ofstream(folder + "/comm") << comm << "\n";
    std::ofstream(folder + "/cgroup") << cgroup;
  }

  std::string proc_;
  std::string lock_;
};

TEST_F(ContainerTest, AProcessIsOfTheContainerByItsCgroup) {
  const auto container = Container::Own(proc_);
  ASSERT_TRUE(container.ok()) << container.status();
  EXPECT_TRUE(container->Has(12));
  EXPECT_FALSE(container->Has(40)) << "another pod's";
  EXPECT_FALSE(container->Has(99)) << "gone";
  EXPECT_FALSE(container->Has(0)) << "of another PID namespace";
}

TEST_F(ContainerTest, AnotherPodsWaitingAgentIsNotOurs) {
  const auto container = Container::Own(proc_);
  ASSERT_TRUE(container.ok()) << container.status();
  EXPECT_FALSE(container->HasNamed("switchyard-wait", lock_));
  EXPECT_TRUE(container->HasNamed("switchyard", lock_));
  EXPECT_FALSE(container->HasNamed("switch", lock_)) << "the whole name";
  Add("41", "switchyard-wait", "0::/\n");
  EXPECT_TRUE(container->HasNamed("switchyard-wait", lock_));
  EXPECT_FALSE(container->HasNamed("switchyard-wait", proc_ + "/12/comm")) << "not open there";
  EXPECT_FALSE(container->HasNamed("switchyard-wait", proc_ + "/none"));
}

TEST_F(ContainerTest, WithoutACgroupOfOnesOwnNothingIsSaid) {
  EXPECT_FALSE(Container::Own(proc_ + "/no").ok());
}

}  // namespace
}  // namespace switchyard::apps
