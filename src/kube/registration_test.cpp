// SPDX-License-Identifier: Apache-2.0
#include "kube/registration.h"

#include <gtest/gtest.h>

namespace switchyard::kube {
namespace {

constexpr SocketId kKubelet{1, 10, 100};
constexpr SocketId kNewKubelet{1, 10, 200};  // the inode number is used again
constexpr absl::Duration kStreamTimeout = absl::Seconds(5);

class RegistrationTest : public ::testing::Test {
 protected:
  Registration::Advice Look(bool came = false, bool open = false) {
    return registration_.Look({now_, kubelet_, came, open});
  }
  void RegisterNow() {
    ASSERT_TRUE(Look().register_now);
    registration_.Succeeded(now_);
  }
  // Waits as told, and expects to be told to register.
  absl::Duration WaitForRetry() {
    const Registration::Advice advice = Look();
    EXPECT_FALSE(advice.register_now);
    now_ += advice.wait;
    EXPECT_TRUE(Look().register_now);
    return advice.wait;
  }

  Registration registration_{{kStreamTimeout, absl::Milliseconds(200), absl::Seconds(30)}};
  absl::Duration now_ = absl::Hours(1);
  std::optional<SocketId> kubelet_ = kKubelet;
};

TEST_F(RegistrationTest, RegistersAtOnceAndThenOnlyWatches) {
  RegisterNow();
  EXPECT_EQ(Look().wait, kStreamTimeout);
  EXPECT_FALSE(registration_.streaming());
  const Registration::Advice advice = Look(true, true);
  EXPECT_FALSE(advice.register_now);
  EXPECT_EQ(advice.event, "");
  EXPECT_TRUE(registration_.streaming());
  EXPECT_EQ(registration_.problem(), "");
}

TEST_F(RegistrationTest, WaitsForKubeletAndSaysSoOnce) {
  kubelet_.reset();
  EXPECT_EQ(Look().event, "kubelet_absent");
  EXPECT_EQ(Look().event, "");
  EXPECT_NE(registration_.problem(), "");
  kubelet_ = kKubelet;
  EXPECT_TRUE(Look().register_now);
}

TEST_F(RegistrationTest, RetriesForEverWithGrowingWaits) {
  absl::Duration last;
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(Look().register_now);
    registration_.Failed(now_, absl::UnavailableError("no"));
    const absl::Duration wait = WaitForRetry();
    EXPECT_GE(wait, last);
    EXPECT_LE(wait, absl::Seconds(30));
    if (i == 0) {
      EXPECT_EQ(wait, absl::Milliseconds(200));
    }
    last = wait;
  }
  EXPECT_EQ(last, absl::Seconds(30));
  EXPECT_EQ(registration_.problem(), "no");
}

TEST_F(RegistrationTest, ANewKubeletEndsTheWaiting) {
  for (int i = 0; i < 8; ++i) registration_.Failed(now_, absl::UnavailableError("no"));
  EXPECT_TRUE(Look().register_now) << "first sight of this kubelet";
  registration_.Failed(now_, absl::UnavailableError("no"));
  EXPECT_FALSE(Look().register_now);
  kubelet_ = kNewKubelet;
  EXPECT_TRUE(Look().register_now);
}

TEST_F(RegistrationTest, ANewKubeletIsRegisteredWithThoughTheOldStreamIsOpen) {
  RegisterNow();
  (void)Look(true, true);
  kubelet_ = kNewKubelet;
  EXPECT_TRUE(Look(true, true).register_now);
}

TEST_F(RegistrationTest, AMissingStreamIsAFailure) {
  RegisterNow();
  now_ += kStreamTimeout - absl::Milliseconds(1);
  EXPECT_EQ(Look().event, "");
  now_ += absl::Milliseconds(1);
  EXPECT_EQ(Look().event, "stream_missing");
  WaitForRetry();
}

TEST_F(RegistrationTest, AStreamThatEndsAtOnceIsSeen) {
  RegisterNow();
  EXPECT_EQ(Look(true, false).event, "stream_closed");
  WaitForRetry();
}

TEST_F(RegistrationTest, AStreamThatEndsLaterIsSeen) {
  RegisterNow();
  (void)Look(true, true);
  EXPECT_EQ(Look(true, false).event, "stream_closed");
  EXPECT_FALSE(registration_.streaming());
  WaitForRetry();
}

TEST_F(RegistrationTest, OnlyAStreamThatStaysEndsTheSeriesOfFailures) {
  absl::Duration wait;
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(Look().register_now);
    registration_.Succeeded(now_);
    (void)Look(true, true);
    (void)Look(true, false);
    wait = WaitForRetry();
  }
  EXPECT_EQ(wait, absl::Milliseconds(1600)) << "kubelet takes it and closes again and again";
  registration_.Succeeded(now_);
  (void)Look(true, true);
  now_ += absl::Minutes(1);
  (void)Look(true, true);
  (void)Look(true, false);
  EXPECT_EQ(WaitForRetry(), absl::Milliseconds(200));
}

}  // namespace
}  // namespace switchyard::kube
