// SPDX-License-Identifier: Apache-2.0
#include "base/pci_address.h"

#include <gtest/gtest.h>

#include <set>

namespace switchyard {
namespace {

TEST(PciAddressTest, OneAddressInEverySpelling) {
  const PciAddress expected{0, 0x0f, 0x1f, 7};
  for (const char* text : {"00000000:0F:1f.7", "0000:0f:1F.7", "0:f:1f.7", "0f:1f.7", "F:1F.7"}) {
    const auto address = PciAddress::Parse(text);
    ASSERT_TRUE(address.ok()) << address.status();
    EXPECT_EQ(*address, expected) << text;
  }
}

TEST(PciAddressTest, TheDomainIsPartOfTheAddress) {
  EXPECT_NE(*PciAddress::Parse("0008:01:00.0"), *PciAddress::Parse("0000:01:00.0"));
  EXPECT_EQ(PciAddress::Parse("10000:e1:00.0")->domain, 0x10000u);  // VMD
  EXPECT_EQ(PciAddress::Parse("ffffffff:00:00.0")->domain, 0xffffffffu);
}

TEST(PciAddressTest, IsWrittenAsSysfsDoes) {
  EXPECT_EQ((PciAddress{0, 0x0f, 0, 0}.ToString()), "0000:0f:00.0");
  EXPECT_EQ((PciAddress{0x10000, 0xe1, 0x1f, 7}.ToString()), "10000:e1:1f.7");
  for (const char* text : {"0000:19:00.0", "0008:01:00.1", "10000:e1:00.0", "ffffffff:ff:1f.7"}) {
    EXPECT_EQ(PciAddress::Parse(text)->ToString(), text);
  }
}

TEST(PciAddressTest, SortsAsNumbers) {
  const std::set<PciAddress> sorted = {
      *PciAddress::Parse("10000:01:00.0"), *PciAddress::Parse("0001:01:00.0"),
      *PciAddress::Parse("0000:9b:00.0"), *PciAddress::Parse("0000:19:00.1")};
  std::vector<std::string> texts;
  for (const PciAddress& a : sorted) texts.push_back(a.ToString());
  EXPECT_EQ(texts, (std::vector<std::string>{"0000:19:00.1", "0000:9b:00.0", "0001:01:00.0",
                                             "10000:01:00.0"}));
}

class HostilePciAddressTest : public testing::TestWithParam<std::string> {};

TEST_P(HostilePciAddressTest, IsRefused) {
  const auto address = PciAddress::Parse(GetParam());
  EXPECT_EQ(address.status().code(), absl::StatusCode::kInvalidArgument) << GetParam();
  EXPECT_LT(address.status().message().size(), 300u);
}

INSTANTIATE_TEST_SUITE_P(
    Texts, HostilePciAddressTest,
    testing::Values("", ".", ":", ":.", "::.", "0000", "0000:19:00", "19.0", "0000:19:00.8",
                    "0000:19:00.f", "0000:19:00.00", "0000:19:20.0", "0000:19:00.", "0000:19:.0",
                    "0000::00.0", ":19:00.0", "0000:100:00.0", "000000000:19:00.0",
                    "1ffffffff:19:00.0", "0000:19:00.0 ", " 0000:19:00.0", "0000:19:00.0\n",
                    "0000:1g:00.0", "-1:19:00.0", "0x0000:19:00.0", "+0:19:00.0",
                    "0000:0000:19:00.0", "0000.19.00.0", "0000:19:00:0", "0000:19:0.0.0",
                    "0000-19-00-0", std::string("0000:19:00.0\0", 13), std::string(100000, '0'),
                    std::string(100000, ':') + ".0", "\xff\xfe:19:00.0",
                    "\xd9\xa0:19:00.0"));  // an Arabic zero is no digit

}  // namespace
}  // namespace switchyard
