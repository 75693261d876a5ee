// SPDX-License-Identifier: Apache-2.0
#include "cdi/cdi_spec.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/files.h"

namespace switchyard::cdi {
namespace {

const CdiSpec kSpec{"nvidia.com/pgpu",
                    {{"0", {"/dev/vfio/devices/vfio0"}}, {"12", {"/dev/vfio/12", "/dev/x\"\\\n"}}}};

class CdiSpecTest : public ::testing::Test {
 protected:
  CdiSpecTest() {
    std::string folder = "/tmp/cdi-XXXXXX";
    folder_ = std::string(::mkdtemp(folder.data())) + "/cdi";  // made by WriteSpec
  }
  ~CdiSpecTest() override {
    std::filesystem::remove_all(std::filesystem::path(folder_).parent_path());
  }
  std::string folder_;
};

TEST_F(CdiSpecTest, IsYamlWithEveryValueQuoted) {
  EXPECT_EQ(ToYaml(kSpec), R"(cdiVersion: "0.5.0"
kind: "nvidia.com/pgpu"
devices:
  - name: "0"
    containerEdits:
      deviceNodes:
        - path: "/dev/vfio/devices/vfio0"
  - name: "12"
    containerEdits:
      deviceNodes:
        - path: "/dev/vfio/12"
        - path: "/dev/x\"\\\x0a"
)");
}

TEST_F(CdiSpecTest, ChecksTheGrammar) {
  EXPECT_TRUE(Validate(kSpec).ok());
  for (const char* kind : {"", "nvidia.com", "nvidia.com/", "/pgpu", "nvidia.com/2330",
                           "nvidia.com/a.b", "nvidia.com/a/b", "nvidia.com/x-", "nv idia/x"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Validate({kind, {}}))) << kind;
  }
  const auto with = [](CdiDevice device) {
    return Validate({"nvidia.com/pgpu", {{"0", {"/dev/a"}}, std::move(device)}});
  };
  EXPECT_TRUE(with({"1a:00.0", {"/dev/a"}}).ok());
  EXPECT_FALSE(with({"", {"/dev/a"}}).ok());
  EXPECT_FALSE(with({"a/b", {"/dev/a"}}).ok());
  EXPECT_FALSE(with({"1-", {"/dev/a"}}).ok());
  EXPECT_FALSE(with({"0", {"/dev/b"}}).ok()) << "the name is there twice";
  EXPECT_FALSE(with({"1", {}}).ok()) << "empty edits";
  EXPECT_FALSE(with({"1", {"/dev/a", "/dev/a"}}).ok());
  EXPECT_FALSE(with({"1", {"dev/a"}}).ok());
}

TEST_F(CdiSpecTest, WritesTheFileItsUsersKnow) {
  ASSERT_TRUE(WriteSpec(folder_, kSpec).ok());
  EXPECT_EQ(ReadFile(folder_ + "/nvidia.com-pgpu.yaml", 4096).value(), ToYaml(kSpec));
  EXPECT_EQ(ListFolder(folder_).value().size(), 1u) << "no temporary file stays";
}

TEST_F(CdiSpecTest, LeavesAnEqualFileAlone) {
  ASSERT_TRUE(WriteSpec(folder_, kSpec).ok());
  struct stat before{}, after{};
  ::stat((folder_ + "/nvidia.com-pgpu.yaml").c_str(), &before);
  ASSERT_TRUE(WriteSpec(folder_, kSpec).ok());
  ::stat((folder_ + "/nvidia.com-pgpu.yaml").c_str(), &after);
  EXPECT_EQ(before.st_ino, after.st_ino);
  ASSERT_TRUE(WriteSpec(folder_, {kSpec.kind, {{"1", {"/dev/vfio/1"}}}}).ok());
  EXPECT_NE(ReadFile(folder_ + "/nvidia.com-pgpu.yaml", 4096).value(), ToYaml(kSpec));
}

TEST_F(CdiSpecTest, RemovesTheOtherExtension) {
  ASSERT_TRUE(MakeFolders(folder_).ok());
  std::ofstream(folder_ + "/nvidia.com-pgpu.json") << "{}";
  std::ofstream(folder_ + "/nvidia.com-other.json") << "{}";
  ASSERT_TRUE(WriteSpec(folder_, kSpec).ok());
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/nvidia.com-pgpu.json"));
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/nvidia.com-other.json"));
}

TEST_F(CdiSpecTest, NoDevicesIsNoFile) {
  ASSERT_TRUE(WriteSpec(folder_, kSpec).ok());
  std::ofstream(folder_ + "/nvidia.com-pgpu.json") << "{}";
  ASSERT_TRUE(WriteSpec(folder_, {kSpec.kind, {}}).ok());
  EXPECT_EQ(ListFolder(folder_).value().size(), 0u);
  EXPECT_TRUE(WriteSpec(folder_, {kSpec.kind, {}}).ok()) << "nothing there is fine";
}

TEST_F(CdiSpecTest, WritesNothingInvalid) {
  EXPECT_TRUE(
      absl::IsInvalidArgument(WriteSpec(folder_, {"nvidia.com/2330", {{"0", {"/dev/a"}}}})));
  EXPECT_FALSE(std::filesystem::exists(folder_));
}

}  // namespace
}  // namespace switchyard::cdi
