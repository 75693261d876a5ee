// SPDX-License-Identifier: Apache-2.0
#include "pci/pci_ids.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pci/testing/tree.h"

namespace switchyard::pci {
namespace {

using ::testing::Eq;
using ::testing::Optional;

class PciIdsTest : public ::testing::Test {
 protected:
  PciIds Load(const std::string& content) {
    folder_.Write("pci.ids", content);
    return PciIds(folder_.Path("pci.ids"));
  }
  testing::SysfsTree folder_;
};

TEST_F(PciIdsTest, ReadsNvidiasBlockOnly) {
  const PciIds ids = Load(
      "# comment\n"
      "10dd  Before\n\t20b0  not NVIDIA's, before\n"
      "10de  NVIDIA Corporation\n"
      "\t1db4  GV100GL [Tesla V100 PCIe 16GB]\n"
      "# a note inside\n"
      "\t20b5  GA100 [A100 PCIe 80GB]\n"
      "\t\t10de 1533  a subsystem\n"
      "\t2235  GA102GL [A40]\r\n"
      "10df  Emulex Corporation\n\t20b2  not NVIDIA's, after\n");
  EXPECT_THAT(ids.Name(0x1db4), Optional(Eq("GV100GL [Tesla V100 PCIe 16GB]")));
  EXPECT_THAT(ids.Name(0x20b5), Optional(Eq("GA100 [A100 PCIe 80GB]")));
  EXPECT_THAT(ids.Name(0x2235), Optional(Eq("GA102GL [A40]")));
  EXPECT_EQ(ids.Name(0x20b0), std::nullopt);
  EXPECT_EQ(ids.Name(0x20b2), std::nullopt);
  EXPECT_EQ(ids.Name(0x1533), std::nullopt);
}

TEST_F(PciIdsTest, TheBlockMayBeTheFirstOrTheLast) {
  EXPECT_THAT(Load("10de  NVIDIA\n\t20b5  A100").Name(0x20b5), Optional(Eq("A100")));
  EXPECT_EQ(Load("10de  NVIDIA").Name(0x20b5), std::nullopt);
  EXPECT_EQ(Load("").Name(0x20b5), std::nullopt);
}

TEST_F(PciIdsTest, MalformedLinesAreSkipped) {
  const PciIds ids =
      Load("10de  NVIDIA\n\t20b  x\n\t\t20b  w\n\tzzzz  y\n\t20b1 z\n\t20b2  \n\t20b3  good\n");
  EXPECT_EQ(ids.Name(0x20b), std::nullopt);
  EXPECT_EQ(ids.Name(0x20b1), std::nullopt);
  EXPECT_EQ(ids.Name(0x20b2), std::nullopt);
  EXPECT_THAT(ids.Name(0x20b3), Optional(Eq("good")));
}

// Debian 12 writes "GH100[H100 SXM5 80GB]", of which the resource name users have can't be made.
TEST_F(PciIdsTest, OurNamesComeBeforeTheFiles) {
  const PciIds ids = Load("10de  NVIDIA\n\t2330  GH100[H100 SXM5 80GB]\n");
  EXPECT_THAT(ids.Name(0x2330), Optional(Eq("GH100 [H100 SXM5 80GB]")));
}

TEST_F(PciIdsTest, WithoutAFileTheNewerBoardsStillHaveNames) {
  const PciIds ids(folder_.Path("absent"));
  EXPECT_THAT(ids.Name(0x2335), Optional(Eq("GH100 [H200 SXM 141GB]")));
  EXPECT_THAT(ids.Name(0x22a3), Optional(Eq("GH100 [H100 NVSwitch]")));
  EXPECT_THAT(ids.Name(0x2901), Optional(Eq("GB100 [B200]")));
  EXPECT_THAT(ids.Name(0x2941), Optional(Eq("GB100 [HGX GB200]")));
  EXPECT_EQ(ids.Name(0x1db4), std::nullopt);
}

TEST_F(PciIdsTest, ReadsTheFileOnceAndOnlyIfNeeded) {
  const PciIds ids = Load("10de  NVIDIA\n\t20b5  first\n");
  EXPECT_TRUE(ids.Name(0x2330).has_value());
  folder_.Write("pci.ids", "10de  NVIDIA\n\t20b5  second\n");
  EXPECT_THAT(ids.Name(0x20b5), Optional(Eq("second")));
  folder_.Write("pci.ids", "10de  NVIDIA\n\t20b5  third\n");
  const PciIds copy = ids;
  EXPECT_THAT(copy.Name(0x20b5), Optional(Eq("second")));
}

TEST_F(PciIdsTest, ReadsTheSystemsFile) {
  const char* path = "/usr/share/misc/pci.ids";
  if (!std::filesystem::exists(path)) {
    GTEST_SKIP() << path << " is missing: install the package pci.ids";
  }
  EXPECT_THAT(PciIds(path).Name(0x20b2), Optional(Eq("GA100 [A100 SXM4 80GB]")));
}

}  // namespace
}  // namespace switchyard::pci
