// SPDX-License-Identifier: Apache-2.0
#include "kube/api/name_lookup.h"

#include <gmock/gmock.h>

#include "base/testing/no_threads.h"

namespace switchyard::kube::api {
namespace {

using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(NameLookup, AnAddressIsItsOwnAnswer) {
  for (const char* address : {"10.96.0.1", "fd00::1"}) {
    const auto found = NameLookup(address).Wait(absl::ZeroDuration());
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_THAT(*found, ElementsAre(address));
  }
}

TEST(NameLookup, ANameIsLookedUpAgainEachTime) {
  NameLookup lookup("localhost");
  for (int i = 0; i < 2; ++i) {
    const auto found = lookup.Wait(absl::Minutes(1));
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_THAT(*found, Contains(AnyOf("127.0.0.1", "::1")));
  }
}

// RFC 6761: no resolver may find it, and getaddrinfo refuses the empty label without asking one.
TEST(NameLookup, ANameThatIsNoneIsAnError) {
  const Status status = NameLookup("no..invalid").Wait(absl::Minutes(1)).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
}

TEST(NameLookup, IsNotWaitedForOnceCancelled) {
  NameLookup lookup("localhost");
  lookup.Cancel();
  EXPECT_TRUE(absl::IsCancelled(lookup.Wait(absl::Minutes(1)).status()));
}

TEST(NameLookup, WithoutAThreadItIsAnErrorAndTriedAgain) {
  NameLookup lookup("localhost");
  Status status;
  const auto look = [&] { status = lookup.Wait(absl::Minutes(1)).status(); };
  if (!switchyard::testing::WithoutThreads(look))
    GTEST_SKIP() << "needs a kernel with seccomp filters (CONFIG_SECCOMP_FILTER)";
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("no thread"));
  look();
  EXPECT_TRUE(status.ok()) << status;
}

}  // namespace
}  // namespace switchyard::kube::api
