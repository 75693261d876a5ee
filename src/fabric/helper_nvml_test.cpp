// SPDX-License-Identifier: Apache-2.0
// The helper process with the simulator's libnvidia-ml.so.1 in it, over a simulated sysfs.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "fabric/helper.h"

namespace switchyard::fabric {
namespace {

namespace fs = std::filesystem;

class HelperNvmlTest : public testing::Test {
 protected:
  // A node with its own copy of the library, since it looks for its data beside itself.
  HelperNvmlTest() {
    char folder[] = "/tmp/swy-nvml-XXXXXX";
    folder_ = ::mkdtemp(folder);
    fs::create_directories(folder_ + "/lib");
    fs::copy_file(SWITCHYARD_LIB_DIR "/libnvidia-ml.so.1", folder_ + "/lib/libnvidia-ml.so.1");
    AddGpu("0000:0f:00.0", "nvidia");
    AddGpu("0000:10:00.0", "vfio-pci");
    AddGpu("0000:41:00.0", "nvidia");
    std::ofstream(folder_ + "/nvml.json") << R"({"root": ")" << folder_ << R"(/host", "gpus": [
             {"address": "0000:0f:00.0", "module": 5}, {"address": "0000:10:00.0", "module": 7},
             {"address": "0000:41:00.0", "module": 0}, {"address": "0000:99:00.0", "module": 1}]})";
    options_.command = {SWITCHYARD_BIN_DIR "/fabric_helper_test_main"};
    options_.nvml_library = folder_ + "/lib/libnvidia-ml.so.1";
    options_.timeout = absl::Seconds(60);  // no test waits for it to pass
  }
  ~HelperNvmlTest() override { fs::remove_all(folder_); }

  void AddGpu(const std::string& address, const std::string& driver) {
    const std::string device = folder_ + "/host/sys/bus/pci/devices/" + address;
    fs::create_directories(device);
    fs::remove(device + "/driver");
    fs::create_symlink("../../../../bus/pci/drivers/" + driver, device + "/driver");
  }

  std::string folder_;
  HelperOptions options_;
};

TEST_F(HelperNvmlTest, ReadsTheGpusOnTheNvidiaDriverOnly) {
  FabricHelper helper(options_);
  const Result<ModuleEntries> entries = helper.ReadModuleIds();
  ASSERT_TRUE(entries.ok()) << entries.status();
  EXPECT_EQ(*entries, (ModuleEntries{{PciAddress{0, 0x0f, 0, 0}, 5}}));

  AddGpu("0000:0f:00.0", "vfio-pci");
  AddGpu("0000:10:00.0", "nvidia");
  EXPECT_EQ(*helper.ReadModuleIds(), (ModuleEntries{{PciAddress{0, 0x10, 0, 0}, 7}}));
}

TEST_F(HelperNvmlTest, ANodeWithoutDriverOrLibraryHasNone) {
  AddGpu("0000:0f:00.0", "vfio-pci");
  AddGpu("0000:41:00.0", "vfio-pci");
  FabricHelper helper(options_);
  Result<ModuleEntries> entries = helper.ReadModuleIds();
  ASSERT_TRUE(entries.ok()) << entries.status();
  EXPECT_TRUE(entries->empty());

  fs::remove(options_.nvml_library);
  entries = helper.ReadModuleIds();
  ASSERT_TRUE(entries.ok()) << entries.status();
  EXPECT_TRUE(entries->empty());
}

}  // namespace
}  // namespace switchyard::fabric
