// SPDX-License-Identifier: Apache-2.0
#include "agent/config_values.h"

#include <gmock/gmock.h>

#include "agent/config_suggest.h"

namespace switchyard::agent {
namespace {

using ::testing::HasSubstr;

TEST(DurationTest, ReadsWholeNumbersWithUnitsLargestFirst) {
  EXPECT_EQ(*ParseDuration("15s"), absl::Seconds(15));
  EXPECT_EQ(*ParseDuration("1m30s"), absl::Seconds(90));
  EXPECT_EQ(*ParseDuration("500ms"), absl::Milliseconds(500));
  EXPECT_EQ(*ParseDuration("2h1ms"), absl::Hours(2) + absl::Milliseconds(1));
  EXPECT_EQ(*ParseDuration("90s"), absl::Seconds(90));
  EXPECT_EQ(*ParseDuration("0s"), absl::ZeroDuration());
}

TEST(DurationTest, RefusesEverythingElse) {
  for (const char* text :
       {"",      "15",   "s",  "1.5s", "-1s", "+1s",  " 1s",  "1s ",  "1 s",         "1S",
        "30s1m", "1s1s", "1d", "1us",  "inf", "1m30", "1e3s", "0x1s", "9999999999s", "1s\n"}) {
    const auto duration = ParseDuration(text);
    ASSERT_FALSE(duration.ok()) << text;
    EXPECT_THAT(duration.status().message(), HasSubstr("write 15s, 1m30s or 500ms")) << text;
  }
}

TEST(DurationTest, TextReadsBackAsItself) {
  for (const char* text : {"15s", "1m30s", "500ms", "1s500ms", "24h", "0s"}) {
    EXPECT_EQ(DurationText(*ParseDuration(text)), text);
  }
}

TEST(PathTest, MustBeAbsoluteAndClean) {
  EXPECT_TRUE(CheckPath("/a/b c", 10).ok());
  for (const std::string& text :
       {std::string(""), std::string("a"), std::string("./a"), std::string("/12345678901"),
        std::string("/a\0b", 4), std::string("/a\n")}) {
    EXPECT_FALSE(CheckPath(text, 10).ok()) << text;
  }
}

TEST(ResourceNameTest, IsKubernetesGrammar) {
  for (const char* name : {"pgpu", "GH100_H100_SXM5_80GB", "a.b-c", "1", "2330"}) {
    EXPECT_TRUE(CheckResourceName(name).ok()) << name;
  }
  for (const std::string& name :
       {std::string(""), std::string("-a"), std::string("a-"), std::string("a/b"),
        std::string("nvidia.com/x"), std::string("a b"), std::string(64, 'a')}) {
    EXPECT_FALSE(CheckResourceName(name).ok()) << name;
  }
}

TEST(DeviceIdTest, IsFourDigits) {
  EXPECT_EQ(*ParseDeviceId("0x2330"), 0x2330);
  EXPECT_EQ(*ParseDeviceId("0x29aB"), 0x29ab);
  for (const char* text :
       {"2330", "0x233", "0x23300", "0X2330", "0x-233", "0x 233", "0x233g", ""}) {
    EXPECT_FALSE(ParseDeviceId(text).ok()) << text;
  }
}

TEST(NodeNameTest, IsADnsSubdomain) {
  for (const char* name : {"n", "ip-10-0-0-1.ec2.internal", "0a"})
    EXPECT_TRUE(CheckNodeName(name).ok());
  for (const std::string& name :
       {std::string(""), std::string("Node"), std::string("a_b"), std::string("-a"),
        std::string("a-"), std::string("a..b"), std::string("a/b"), std::string(254, 'a')}) {
    EXPECT_FALSE(CheckNodeName(name).ok()) << name;
  }
}

TEST(HttpAddressTest, IsAnAddressAndAPort) {
  const auto v4 = ParseHttpAddress("0.0.0.0:80");
  ASSERT_TRUE(v4.ok());
  EXPECT_EQ(v4->host, "0.0.0.0");
  EXPECT_EQ(v4->port, 80);
  EXPECT_FALSE(v4->IsLoopback());
  const auto v6 = ParseHttpAddress("[::1]:0");
  ASSERT_TRUE(v6.ok());
  EXPECT_EQ(v6->host, "::1");
  EXPECT_TRUE(v6->IsLoopback());
  EXPECT_EQ(v6->ToString(), "[::1]:0");
  EXPECT_TRUE(ParseHttpAddress("127.9.9.9:1")->IsLoopback());
  for (const std::string& text :
       {std::string(""), std::string("9417"), std::string(":9417"), std::string("localhost:9417"),
        std::string("127.0.0.1"), std::string("127.0.0.1:"), std::string("127.0.0.1:65536"),
        std::string("127.0.0.1:-1"), std::string("127.0.0.1: 80"), std::string("::1:9417"),
        std::string("[127.0.0.1]:80"), std::string("127.0.0.1\0:80", 13)}) {
    EXPECT_FALSE(ParseHttpAddress(text).ok()) << text;
  }
}

TEST(QuoteTest, BoundsAndEscapes) {
  EXPECT_EQ(Quote("a\n"), "\"a\\n\"");
  EXPECT_LT(Quote(std::string(100000, 'x')).size(), 120u);
}

TEST(NearestTest, FindsWhatWasMeant) {
  const std::vector<std::string> keys = {"fabric", "fabric.mode", "fabric.probeInterval",
                                         "log.level", "paths.socket"};
  EXPECT_EQ(Nearest("fabric.probInterval", keys), "fabric.probeInterval");
  EXPECT_EQ(Nearest("fabric.probe_interval", keys), "fabric.probeInterval");
  EXPECT_EQ(Nearest("probeInterval", keys), "fabric.probeInterval");
  EXPECT_EQ(Nearest("LOG.LEVEL", keys), "log.level");
  EXPECT_EQ(Nearest("fabrik", keys), "fabric");
  EXPECT_EQ(Nearest("anything", {}), "");
}

}  // namespace
}  // namespace switchyard::agent
