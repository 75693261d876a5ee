// SPDX-License-Identifier: Apache-2.0
#include "kube/api/in_cluster.h"

#include <gmock/gmock.h>

#include "kube/api/testing/service_account.h"

namespace switchyard::kube::api {
namespace {

using ::testing::HasSubstr;
using testing::ServiceAccount;

TEST(InCluster, IsWhatKubeletTellsAPod) {
  const ServiceAccount account;
  const auto v4 = FindInCluster("10.96.0.1", "443", account.folder());
  ASSERT_TRUE(v4.ok()) << v4.status();
  EXPECT_EQ(v4->ToString(), "https://10.96.0.1:443");
  const auto v6 = FindInCluster("fd00::1", "6443", account.folder());
  ASSERT_TRUE(v6.ok()) << v6.status();
  EXPECT_EQ(v6->ToString(), "https://[fd00::1]:6443");
}

TEST(InCluster, OutsideOfOneIsNoMistake) {
  const ServiceAccount account;
  EXPECT_TRUE(absl::IsNotFound(FindInCluster(nullptr, nullptr, account.folder()).status()));
  EXPECT_TRUE(absl::IsNotFound(FindInCluster("", "443", account.folder()).status()));
  EXPECT_TRUE(absl::IsNotFound(FindInCluster("10.96.0.1", nullptr, account.folder()).status()));
  account.Remove("token");  // automountServiceAccountToken: false
  const Status without = FindInCluster("10.96.0.1", "443", account.folder()).status();
  EXPECT_TRUE(absl::IsNotFound(without));
  EXPECT_THAT(std::string(without.message()), HasSubstr(account.folder() + "/token"));
}

TEST(InCluster, WhatIsToldWronglyIsAMistake) {
  const ServiceAccount account;
  for (const char* port : {"0", "65536", "tcp://10.96.0.1:443", "-1"})
    EXPECT_TRUE(absl::IsInvalidArgument(FindInCluster("a", port, account.folder()).status()))
        << port;
  for (const char* host : {"a b", "a\r\nx: y", "https://a"})
    EXPECT_TRUE(absl::IsInvalidArgument(FindInCluster(host, "1", account.folder()).status()))
        << host;
}

TEST(InCluster, ATokenIsOneWord) {
  const ServiceAccount account;
  EXPECT_EQ(*ReadToken(account.At("a", 1)), "first");
  account.Write("token", "two\r\nwords: x");
  EXPECT_TRUE(absl::IsInvalidArgument(ReadToken(account.At("a", 1)).status()));
  account.Write("token", "\n");
  EXPECT_FALSE(ReadToken(account.At("a", 1)).ok());
}

}  // namespace
}  // namespace switchyard::kube::api
