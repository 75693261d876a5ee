// SPDX-License-Identifier: Apache-2.0
#include "agent/fabric_hints.h"

#include <gmock/gmock.h>

#include "pci/testing/tree.h"

namespace switchyard::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> Hints(const pci::testing::SysfsTree& tree) {
  return FabricHints(tree.root(), *pci::Scan(tree.root()));
}

TEST(FabricHintsTest, APlainNodeHasNone) {
  pci::testing::SysfsTree tree;
  tree.AddGpu("0000:19:00.0", 1);
  EXPECT_THAT(Hints(tree), IsEmpty());
}

TEST(FabricHintsTest, CountsNvSwitches) {
  pci::testing::SysfsTree tree;
  tree.AddNvSwitch("0000:05:00.0", 2);
  EXPECT_THAT(Hints(tree), ElementsAre("1 NVSwitch"));
  tree.AddNvSwitch("0000:06:00.0", 3);
  EXPECT_THAT(Hints(tree), ElementsAre("2 NVSwitches"));
}

TEST(FabricHintsTest, FindsTheSwitchManagementFunctionOfItsVendorOnly) {
  pci::testing::SysfsTree tree;
  for (const char* address : {"0000:07:00.0", "0000:08:00.0", "0000:09:00.0"}) {
    tree.AddFunction({.address = address, .class_code = 0x020700, .vendor = 0x15b3});
  }
  tree.AddFunction({.address = "0000:0a:00.0", .class_code = 0x020700, .vendor = 0x8086});
  tree.SetFile("0000:07:00.0", "vpd", std::string("\x82\x05\0SW_MNG_board\x90", 16));
  tree.SetFile("0000:08:00.0", "vpd", "a network card");
  tree.SetFile("0000:0a:00.0", "vpd", "SW_MNG");
  EXPECT_THAT(Hints(tree), ElementsAre("0000:07:00.0 is a switch management function (SW_MNG)"));
}

}  // namespace
}  // namespace switchyard::agent
