// SPDX-License-Identifier: Apache-2.0
#include "fabric/module_ids.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <vector>

namespace switchyard::fabric {
namespace {

struct FakeGpu {
  const char* bus_id = "00000000:0F:00.0";
  unsigned module = 0;
  nvml::Return handle_code = 0;
  nvml::Return pci_code = 0;
  nvml::Return module_code = 0;
};

class FakeNvml final : public NvmlApi {
 public:
  nvml::Return init_code = 0;
  nvml::Return count_code = 0;
  std::vector<FakeGpu> gpus;
  unsigned count_more = 0;
  int open = 0;  // Inits minus Shutdowns

  nvml::Return Init() override {
    if (init_code == 0) ++open;
    return init_code;
  }
  nvml::Return Shutdown() override {
    --open;
    return 0;
  }
  nvml::Return DeviceGetCount(unsigned* count) override {
    *count = static_cast<unsigned>(gpus.size()) + count_more;
    return count_code;
  }
  nvml::Return DeviceGetHandleByIndex(unsigned index, nvml::Device* device) override {
    *device = &gpus.at(index);
    return gpus.at(index).handle_code;
  }
  nvml::Return DeviceGetPciInfo(nvml::Device device, nvml::PciInfo* info) override {
    std::snprintf(info->bus_id, sizeof(info->bus_id), "%s", Gpu(device).bus_id);
    return Gpu(device).pci_code;
  }
  nvml::Return DeviceGetModuleId(nvml::Device device, unsigned* module) override {
    *module = Gpu(device).module;
    return Gpu(device).module_code;
  }
  const char* ErrorString(nvml::Return) override { return "the text of it"; }

 private:
  static FakeGpu& Gpu(nvml::Device device) { return *static_cast<FakeGpu*>(device); }
};

class ModuleIdsTest : public testing::Test {
 protected:
  Result<ModuleEntries> Read() {
    Result<ModuleEntries> entries = ReadModuleIdsFrom(nvml_);
    EXPECT_EQ(nvml_.open, 0) << "NVML is left open";
    return entries;
  }
  FakeNvml nvml_;
};

constexpr PciAddress kBus0f{0, 0x0f, 0, 0};
constexpr PciAddress kBus10{0, 0x10, 0, 0};

TEST_F(ModuleIdsTest, ReadsEveryGpu) {
  nvml_.gpus = {{"00000000:0F:00.0", 5}, {"00000008:10:00.0", 16}};
  const Result<ModuleEntries> entries = Read();
  ASSERT_TRUE(entries.ok()) << entries.status();
  EXPECT_EQ(*entries, (ModuleEntries{{kBus0f, 5}, {PciAddress{8, 0x10, 0, 0}, 16}}));
}

TEST_F(ModuleIdsTest, AGpuOnNoBaseboardIsLeftOut) {
  nvml_.gpus = {{"00000000:0F:00.0", 0}};
  FakeGpu unsupported{"00000000:11:00.0", 3};
  unsupported.module_code = nvml::kNotSupported;
  nvml_.gpus.push_back(unsupported);
  const Result<ModuleEntries> entries = Read();
  ASSERT_TRUE(entries.ok()) << entries.status();
  EXPECT_TRUE(entries->empty());
}

TEST_F(ModuleIdsTest, ANodeWithoutTheDriverIsNormal) {
  for (nvml::Return code : {1, 6, 9, 12}) {
    nvml_.init_code = code;
    const Result<ModuleEntries> entries = Read();
    ASSERT_TRUE(entries.ok()) << entries.status();
    EXPECT_TRUE(entries->empty());
  }
}

TEST_F(ModuleIdsTest, OtherFailuresOfInitAreErrors) {
  nvml_.init_code = nvml::kLibRmVersionMismatch;
  EXPECT_EQ(Read().status().code(), absl::StatusCode::kFailedPrecondition);
  nvml_.init_code = nvml::kNoPermission;
  EXPECT_EQ(Read().status().code(), absl::StatusCode::kPermissionDenied);
  nvml_.init_code = 999;
  const Status status = Read().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_NE(status.message().find("nvmlInit_v2 returned 999 (the text of it)"),
            absl::string_view::npos)
      << status;
}

TEST_F(ModuleIdsTest, OneFailingGpuDoesNotStopTheOthers) {
  constexpr nvml::Return kGpuIsLost = 15;
  FakeGpu lost{"00000000:01:00.0", 1};
  lost.handle_code = kGpuIsLost;
  FakeGpu no_pci{"00000000:02:00.0", 2};
  no_pci.pci_code = kGpuIsLost;
  FakeGpu no_module{"00000000:03:00.0", 3};
  no_module.module_code = kGpuIsLost;
  nvml_.gpus = {
      lost, no_pci, no_module, {"nonsense", 4}, {"00000000:04:00.0", 17}, {"00000000:10:00.0", 7}};
  const Result<ModuleEntries> entries = Read();
  ASSERT_TRUE(entries.ok()) << entries.status();
  EXPECT_EQ(*entries, (ModuleEntries{{kBus10, 7}}));
}

TEST_F(ModuleIdsTest, IfEveryGpuFailsTheFirstFailureIsTheError) {
  FakeGpu lost{"00000000:01:00.0", 1};
  lost.module_code = 15;
  nvml_.gpus = {lost, {"00000000:04:00.0", 17}};
  const Status status = Read().status();
  EXPECT_NE(status.message().find("nvmlDeviceGetModuleId of 0000:01:00.0 returned 15"),
            absl::string_view::npos)
      << status;
}

TEST_F(ModuleIdsTest, CountIsBounded) {
  nvml_.count_more = 257;
  EXPECT_EQ(Read().status().code(), absl::StatusCode::kDataLoss);
  nvml_.count_code = 999;
  EXPECT_EQ(Read().status().code(), absl::StatusCode::kInternal);
}

TEST(ModuleIdsLibrary, NoLibraryIsNormal) {
  const Result<ModuleEntries> entries = ReadModuleIdsFromLibrary("/nonexistent/libnvidia-ml.so.1");
  ASSERT_TRUE(entries.ok()) << entries.status();
  EXPECT_TRUE(entries->empty());
}

TEST(ModuleIdsLibrary, AnotherLibraryIsNamed) {
  const Status status = LoadNvml("libm.so.6").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_NE(status.message().find("libm.so.6 has no function nvmlInit_v2"), absl::string_view::npos)
      << status;
}

}  // namespace
}  // namespace switchyard::fabric
