// SPDX-License-Identifier: Apache-2.0
#include "fabric/helper_channel.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstdint>
#include <thread>

#include "base/unique_fd.h"

namespace switchyard::fabric {
namespace {

class HelperChannelTest : public testing::Test {
 protected:
  HelperChannelTest() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    left_.reset(ends[0]);
    right_.reset(ends[1]);
  }
  static constexpr absl::Duration kNever = absl::InfiniteDuration();
  UniqueFd left_;
  UniqueFd right_;
};

TEST_F(HelperChannelTest, MessagesKeepTheirBounds) {
  ASSERT_TRUE(SendMessage(left_.get(), "one", kNever).ok());
  ASSERT_TRUE(SendMessage(left_.get(), "", kNever).ok());
  ASSERT_TRUE(SendMessage(left_.get(), "three", kNever).ok());
  EXPECT_EQ(*ReceiveMessage(right_.get(), kNever), "one");
  EXPECT_EQ(*ReceiveMessage(right_.get(), kNever), "");
  EXPECT_EQ(*ReceiveMessage(right_.get(), kNever), "three");
}

TEST_F(HelperChannelTest, AMessageFarAboveTheSocketsBufferPasses) {
  const std::string big(kMaxMessageBytes, 'x');
  std::thread sender([&] { EXPECT_TRUE(SendMessage(left_.get(), big, kNever).ok()); });
  const Result<std::string> got = ReceiveMessage(right_.get(), kNever);
  sender.join();
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_TRUE(*got == big);
}

TEST_F(HelperChannelTest, LongerOnesAreRefusedAtBothEnds) {
  const std::string too_big(kMaxMessageBytes + 1, 'x');
  EXPECT_EQ(SendMessage(left_.get(), too_big, kNever).code(), absl::StatusCode::kDataLoss);
  const std::uint32_t length = kMaxMessageBytes + 1;
  ASSERT_EQ(::send(left_.get(), &length, sizeof(length), 0), static_cast<ssize_t>(sizeof(length)));
  EXPECT_EQ(ReceiveMessage(right_.get(), kNever).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(HelperChannelTest, DeadlineEndsAHalfMessage) {
  const std::uint32_t length = 8;
  ASSERT_EQ(::send(left_.get(), &length, sizeof(length), 0), static_cast<ssize_t>(sizeof(length)));
  ASSERT_EQ(::send(left_.get(), "half", 4, 0), 4);
  const absl::Duration soon = RealClock().Monotonic() + absl::Milliseconds(5);
  EXPECT_EQ(ReceiveMessage(right_.get(), soon).status().code(),
            absl::StatusCode::kDeadlineExceeded);
}

TEST_F(HelperChannelTest, AClosedEndIsUnavailableBothWays) {
  EXPECT_FALSE(IsHungUp(left_.get()));
  right_.reset();
  EXPECT_TRUE(IsHungUp(left_.get()));
  EXPECT_EQ(SendMessage(left_.get(), "x", kNever).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ReceiveMessage(left_.get(), kNever).status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace switchyard::fabric
