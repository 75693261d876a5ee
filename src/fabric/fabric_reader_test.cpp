// SPDX-License-Identifier: Apache-2.0
#include "fabric/fabric_reader.h"

#include <gtest/gtest.h>

namespace switchyard::fabric {
namespace {

TEST(FabricAddress, Tcp) {
  const Result<FabricAddress> address = FabricAddress::Parse("127.0.0.1:6666");
  ASSERT_TRUE(address.ok()) << address.status();
  EXPECT_EQ(address->text, "127.0.0.1:6666");
  EXPECT_FALSE(address->is_unix);
  EXPECT_EQ(address->ToString(), "127.0.0.1:6666");
}

TEST(FabricAddress, UnixSocketLosesThePrefixAndGetsItBack) {
  const Result<FabricAddress> address =
      FabricAddress::Parse("unix:/run/nvidia-fabricmanager/socket");
  ASSERT_TRUE(address.ok()) << address.status();
  EXPECT_EQ(address->text, "/run/nvidia-fabricmanager/socket");
  EXPECT_TRUE(address->is_unix);
  EXPECT_EQ(address->ToString(), "unix:/run/nvidia-fabricmanager/socket");
}

TEST(FabricAddress, RefusesWhatLibnvfmCouldNotUse) {
  const std::string longest = "unix:/" + std::string(106, 'a');  // a path of 107 bytes
  EXPECT_TRUE(FabricAddress::Parse(longest).ok());
  for (const std::string& bad :
       {std::string(), std::string("127.0.0.1"), std::string("localhost:6666"),
        std::string("127.0.0.1:"), std::string("127.0.0.1:0"), std::string("127.0.0.1:65536"),
        std::string("127.0.0.1:+80"), std::string("127.0.0.1:66 "), std::string("1.2.3:6666"),
        std::string("[::1]:6666"), std::string("/run/socket"), std::string("unix:"),
        std::string("unix:run/socket"), longest + "a"}) {
    const Status status = FabricAddress::Parse(bad).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bad;
    EXPECT_NE(status.message().find("127.0.0.1:6666"), absl::string_view::npos) << status;
  }
}

}  // namespace
}  // namespace switchyard::fabric
