// SPDX-License-Identifier: Apache-2.0
#include "fabric/nvfm_codes.h"

#include <gtest/gtest.h>

#include <set>

namespace switchyard::fabric::nvfm {
namespace {

std::set<Return> CodesThatRead(Reading reading) {
  std::set<Return> codes;
  for (Return code = -40; code <= 10; ++code) {
    if (ReadingOf(code) == reading) codes.insert(code);
  }
  return codes;
}

TEST(NvfmCodes, EveryCodeFrom0ToMinus29HasANameOfItsOwn) {
  std::set<absl::string_view> names;
  Return expected = 0;
  for (const CodeInfo& info : Codes()) {
    EXPECT_EQ(info.code, expected--);
    names.insert(info.name);
  }
  EXPECT_EQ(expected, -30);
  EXPECT_EQ(names.size(), 30u);
}

TEST(NvfmCodes, ReadAsDocumented) {
  EXPECT_EQ(CodesThatRead(Reading::kSuccess), (std::set<Return>{0}));
  EXPECT_EQ(CodesThatRead(Reading::kRetry), (std::set<Return>{-5, -8, -15, -22}));
  EXPECT_EQ(CodesThatRead(Reading::kReconnect), (std::set<Return>{-9}));
  EXPECT_EQ(CodesThatRead(Reading::kWrongMode), (std::set<Return>{-3}));
  EXPECT_EQ(CodesThatRead(Reading::kAbi), (std::set<Return>{-6}));
  EXPECT_EQ(CodesThatRead(Reading::kFabricFault),
            (std::set<Return>{-2, -10, -25, -26, -27, -28, -29}));
}

TEST(NvfmCodes, NumberStaysInTheText) {
  EXPECT_EQ(CodeToString(-9), "-9 (CONNECTION_NOT_VALID)");
  EXPECT_EQ(CodeToString(-24), "-24 (RESOURCE_USED_IN_ANOTHER_PARTITION)");
  EXPECT_EQ(CodeToString(-77), "-77 (not a documented code)");
  EXPECT_EQ(CodeToString(3), "3 (not a documented code)");
}

}  // namespace
}  // namespace switchyard::fabric::nvfm
