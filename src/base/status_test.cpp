// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>

namespace switchyard {
namespace {

TEST(StatusTest, AnnotateKeepsTheCodeAndPutsTheContextInFront) {
  const Status status = Annotate(absl::NotFoundError("no such file"), "reading the map");
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(), "reading the map: no such file");
  EXPECT_TRUE(Annotate(OkStatus(), "anything").ok());
}

TEST(StatusTest, ErrnoErrorNamesWhatAndWhy) {
  const Status status = ErrnoError(ENOENT, "/run/x.json");
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(), "/run/x.json: No such file or directory");
  EXPECT_EQ(ErrnoError(EACCES, "x").code(), absl::StatusCode::kPermissionDenied);
}

Result<std::unique_ptr<int>> Half(int n) {
  if (n % 2 != 0) return absl::InvalidArgumentError("odd");
  return std::make_unique<int>(n / 2);
}

Result<int> Quarter(int n) {
  ASSIGN_OR_RETURN(const std::unique_ptr<int> half, Half(n));
  ASSIGN_OR_RETURN(auto quarter, Half(*half));
  return *quarter;
}

Status Check(int n) {
  RETURN_IF_ERROR(Half(n).status());
  return absl::AlreadyExistsError("came to the end");
}

TEST(StatusTest, MacrosReturnTheFirstError) {
  EXPECT_EQ(*Quarter(12), 3);
  EXPECT_EQ(Quarter(7).status().message(), "odd");
  EXPECT_EQ(Quarter(6).status().message(), "odd");
  EXPECT_EQ(Check(1).message(), "odd");
  EXPECT_EQ(Check(2).message(), "came to the end");
}

}  // namespace
}  // namespace switchyard
