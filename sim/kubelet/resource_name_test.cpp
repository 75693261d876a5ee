// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "sim/kubelet/registration_server.h"

namespace switchyard::sim {
namespace {

TEST(ResourceName, ExtendedResourcesAreTaken) {
  for (const std::string& name :
       {std::string("nvidia.com/GH100_H100_SXM5_80GB"), std::string("v/x"),
        std::string("nvidia.com/pgpu"), absl::StrCat("a.b/", std::string(63, 'x'))}) {
    EXPECT_TRUE(CheckResourceName(name).ok()) << CheckResourceName(name);
  }
}

TEST(ResourceName, OthersAreRefusedAndNamed) {
  for (const std::string& name :
       {std::string(""), std::string("gpu"), std::string("nvidia.com/"), std::string("/gpu"),
        std::string("kubernetes.io/gpu"), std::string("x.kubernetes.io/gpu"),
        std::string("requests.nvidia.com/gpu"), std::string("nvidia.com/gpu/x"),
        std::string("nvidia.com/-gpu"), std::string("nvidia.com/gpu_"),
        std::string("NVIDIA.com/gpu"), std::string("nvidia..com/gpu"),
        std::string("nvidia.com/g pu"), absl::StrCat("a.b/", std::string(64, 'x'))}) {
    const Status status = CheckResourceName(name);
    EXPECT_FALSE(status.ok()) << name;
    EXPECT_NE(status.message().find(name), absl::string_view::npos);
  }
}

}  // namespace
}  // namespace switchyard::sim
