// SPDX-License-Identifier: Apache-2.0
// The helper process for real: FabricHelper, a helper executable, the simulator's libnvfm.so.1 in
// it, and the simulator's Fabric Manager in this process. NVML: helper_nvml_test.cpp.
#include "fabric/helper.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/files.h"
#include "fabric/helper_channel.h"
#include "fabric/helper_protocol.h"
#include "sim/fm/fabric_manager.h"

namespace switchyard::fabric {
namespace {

namespace fs = std::filesystem;
using absl::StatusCode;
using sim::BrokenTable;
using sim::FabricManagerFaults;

// Long enough for a slow machine; no test waits for it to pass.
constexpr absl::Duration kLong = absl::Seconds(60);

constexpr char kHelper[] = SWITCHYARD_BIN_DIR "/fabric_helper_test_main";
constexpr char kNvfm[] = SWITCHYARD_LIB_DIR "/libnvfm.so.1";
constexpr char kNvml[] = SWITCHYARD_LIB_DIR "/libnvidia-ml.so.1";

sim::Board SmallBoard(bool identity_by_pci) {
  sim::Board board;
  board.name = "small";
  board.identity_by_pci = identity_by_pci;
  board.return_codes = identity_by_pci ? "ampere" : "hopper";
  board.nvlink_line_rate_mbps = 26562;
  board.partitions = {{0, {1, 2}, 18}, {7, {1}, 0}, {8, {2}, 0}};
  for (int module : {1, 2}) {
    sim::BoardDevice device;
    device.module = module;
    device.address = {0, static_cast<std::uint8_t>(0x60 + module), 0, 0};
    device.physical_id = identity_by_pci ? 10 + module : module;
    device.uuid = "GPU-" + std::to_string(module);
    board.devices.push_back(device);
  }
  return board;
}

class HelperTest : public testing::Test {
 protected:
  HelperTest() {
    char folder[] = "/tmp/swy-fm-XXXXXX";
    folder_ = ::mkdtemp(folder);
    manager_options_ = {.tcp = "127.0.0.1:0",
                        .unix_socket = folder_ + "/fm",
                        .internal_socket = folder_ + "/internal"};
  }
  ~HelperTest() override { fs::remove_all(folder_); }

  void Up(bool identity_by_pci = false) {
    manager_ = std::make_unique<sim::FabricManager>(SmallBoard(identity_by_pci), manager_options_);
    const Status status = manager_->Start();
    ASSERT_TRUE(status.ok()) << status;
  }

  HelperOptions Options(absl::string_view address = "") {
    HelperOptions options;
    options.command = {kHelper, StartsFile()};
    options.address =
        *FabricAddress::Parse(address.empty() ? absl::StrCat("unix:", folder_, "/fm") : address);
    options.fabric_library = kNvfm;
    options.nvml_library = kNvml;
    options.timeout = kLong;
    return options;
  }

  std::string StartsFile() const { return folder_ + "/starts"; }

  // Process ids of every helper started so far.
  std::vector<pid_t> Starts() const {
    std::ifstream file(StartsFile());
    std::vector<pid_t> pids;
    for (pid_t pid; file >> pid;) pids.push_back(pid);
    return pids;
  }

  void ExpectFailure(FabricHelper& helper, StatusCode code, absl::string_view says) {
    const Status status = helper.ReadPartitions().status();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_NE(status.message().find(says), absl::string_view::npos) << status;
  }

  std::string folder_;
  sim::FabricManager::Options manager_options_;
  std::unique_ptr<sim::FabricManager> manager_;
};

FabricGpu Gpu(unsigned module, unsigned links) {
  FabricGpu gpu;
  gpu.physical_id = module;
  gpu.nvlinks_available = links;
  gpu.nvlinks_max = 18;
  gpu.line_rate_mbps = 26562;
  return gpu;
}

FabricList HopperList(bool pair_active) {
  FabricList list;
  list.max_partitions = 3;
  list.partitions = {
      {0, pair_active, {Gpu(1, 18), Gpu(2, 18)}}, {7, false, {Gpu(1, 0)}}, {8, false, {Gpu(2, 0)}}};
  return list;
}

TEST_F(HelperTest, ReadsTheListOverUnixSocketAndTcp) {
  Up();
  ASSERT_TRUE(manager_->SetActive({0}).ok());
  for (const std::string& address :
       {absl::StrCat("unix:", folder_, "/fm"), manager_->tcp_address()}) {
    FabricHelper helper(Options(address));
    const Result<FabricList> list = helper.ReadPartitions();
    ASSERT_TRUE(list.ok()) << list.status();
    EXPECT_EQ(*list, HopperList(true)) << address;
  }
}

TEST_F(HelperTest, ZeroAddressesAreAbsent) {
  manager_options_.zero_pci_bus_ids = true;
  Up();
  FabricHelper helper(Options());
  const Result<FabricList> list = helper.ReadPartitions();
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ(*list, HopperList(false));
}

TEST_F(HelperTest, A100NamesAddressesAndLosesDegradedPartitions) {
  Up(/*identity_by_pci=*/true);
  FabricManagerFaults faults;
  faults.failed_modules = {2};
  manager_->SetFaults(faults);
  FabricHelper helper(Options());
  const Result<FabricList> list = helper.ReadPartitions();
  ASSERT_TRUE(list.ok()) << list.status();
  FabricGpu gpu = Gpu(11, 0);
  gpu.uuid = "GPU-1";
  gpu.address = PciAddress{0, 0x61, 0, 0};
  FabricList expected;
  expected.max_partitions = 3;
  expected.partitions = {{7, false, {gpu}}};
  EXPECT_EQ(*list, expected);
}

TEST_F(HelperTest, H100ListStaysWholeWhateverIsDegraded) {
  Up();
  FabricManagerFaults faults;
  faults.failed_modules = {2};
  manager_->SetFaults(faults);
  FabricHelper helper(Options());
  EXPECT_EQ(*helper.ReadPartitions(), HopperList(false));
}

TEST_F(HelperTest, DownAndUpAgain) {
  Up();
  for (const std::string& address :
       {absl::StrCat("unix:", folder_, "/fm"), manager_->tcp_address()}) {
    FabricHelper helper(Options(address));
    EXPECT_TRUE(helper.ReadPartitions().ok());
    manager_->Stop();
    ExpectFailure(helper, StatusCode::kUnavailable, address);
    ASSERT_TRUE(manager_->Start().ok());
    EXPECT_TRUE(helper.ReadPartitions().ok());
  }
  EXPECT_EQ(Starts().size(), 2u) << "one helper each";
}

TEST_F(HelperTest, OldFmGetsVersion1) {
  Up();
  FabricManagerFaults faults;
  faults.connect_v1_only = true;
  manager_->SetFaults(faults);
  for (const std::string& address :
       {absl::StrCat("unix:", folder_, "/fm"), manager_->tcp_address()}) {
    FabricHelper helper(Options(address));
    EXPECT_TRUE(helper.ReadPartitions().ok()) << address;
  }
}

TEST_F(HelperTest, WrongSocketAndWrongModeAreToldApart) {
  Up();
  FabricHelper at_internal(Options(absl::StrCat("unix:", folder_, "/internal")));
  ExpectFailure(at_internal, StatusCode::kFailedPrecondition, "FM_CMD_UNIX_SOCKET_PATH");

  FabricHelper helper(Options());
  FabricManagerFaults faults;
  faults.list_code = -3;
  manager_->SetFaults(faults);
  ExpectFailure(helper, StatusCode::kFailedPrecondition, "FABRIC_MODE=1");
  faults = {};
  faults.connect_code = -8;
  manager_->SetFaults(faults);
  ExpectFailure(helper, StatusCode::kUnavailable, "NOT_CONFIGURED");
}

TEST_F(HelperTest, TablesThatBreakTheRulesAreRefused) {
  Up();
  FabricHelper helper(Options());
  for (const BrokenTable table :
       {BrokenTable::kTooManyPartitions, BrokenTable::kTooManyGpus, BrokenTable::kRepeatedId,
        BrokenTable::kEmptyPartition, BrokenTable::kRepeatedGpu}) {
    FabricManagerFaults faults;
    faults.table = table;
    manager_->SetFaults(faults);
    ExpectFailure(helper, StatusCode::kDataLoss, "was not used");
  }
  manager_->SetFaults({});
  EXPECT_TRUE(helper.ReadPartitions().ok());
}

TEST_F(HelperTest, NoLibraryIsNotFoundUntilItIsInstalled) {
  Up();
  HelperOptions options = Options();
  options.fabric_library = folder_ + "/libnvfm.so.1";
  FabricHelper helper(options);
  ExpectFailure(helper, StatusCode::kNotFound, "fabric.library");
  fs::copy_file(kNvfm, options.fabric_library);
  EXPECT_TRUE(helper.ReadPartitions().ok());
}

TEST_F(HelperTest, AnotherLibraryIsRefusedWithTheMissingFunction) {
  HelperOptions options = Options();
  options.fabric_library = kNvml;
  FabricHelper helper(options);
  ExpectFailure(helper, StatusCode::kUnimplemented, "fmLibInit");
}

TEST_F(HelperTest, ACrashIsNamedAndTheNextCallStartsAnew) {
  Up();
  FabricHelper helper(Options());
  FabricManagerFaults faults;
  faults.crash_library = true;
  manager_->SetFaults(faults);
  ExpectFailure(helper, StatusCode::kAborted, "signal 11");
  manager_->SetFaults({});
  EXPECT_TRUE(helper.ReadPartitions().ok());
  EXPECT_EQ(Starts().size(), 2u);
}

TEST_F(HelperTest, AHangEndsAtTheDeadlineWithTheHelperKilled) {
  Up();
  HelperOptions options = Options();
  options.timeout = absl::Milliseconds(200);
  FabricHelper helper(options);
  FabricManagerFaults faults;
  faults.hang = FabricManagerFaults::Hang::kList;
  manager_->SetFaults(faults);
  ExpectFailure(helper, StatusCode::kDeadlineExceeded, "within 200ms");
  for (const pid_t pid : Starts()) {
    EXPECT_FALSE(fs::exists(absl::StrCat("/proc/", pid))) << "killed and reaped";
  }
}

TEST_F(HelperTest, LatencyBelowTheDeadlineIsWaitedFor) {
  Up();
  FabricManagerFaults faults;
  faults.latency = absl::Milliseconds(30);
  manager_->SetFaults(faults);
  FabricHelper helper(Options());
  EXPECT_TRUE(helper.ReadPartitions().ok());
}

TEST_F(HelperTest, CloseEndsTheCallInFlightAndRefusesLaterOnes) {
  Up();
  FabricHelper helper(Options());
  FabricManagerFaults faults;
  faults.hang = FabricManagerFaults::Hang::kList;
  manager_->SetFaults(faults);
  std::thread other([&] {
    EXPECT_TRUE(manager_->AwaitHeldCall(kLong));
    helper.Close();
  });
  ExpectFailure(helper, StatusCode::kCancelled, "interrupted");
  other.join();
  manager_->SetFaults({});
  ExpectFailure(helper, StatusCode::kCancelled, "closed");
  EXPECT_EQ(Starts().size(), 1u) << "no helper is started for nothing";
}

TEST_F(HelperTest, OneHelperServesManyCallsAndLeaksNoDescriptor) {
  Up();
  FabricHelper helper(Options());
  ASSERT_TRUE(helper.ReadPartitions().ok());
  ASSERT_EQ(Starts().size(), 1u);
  const std::string fds = absl::StrCat("/proc/", Starts()[0], "/fd");
  const std::size_t open = ListFolder(fds)->size();
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(helper.ReadPartitions().ok());
    ASSERT_TRUE(helper.ReadModuleIds().ok());
  }
  EXPECT_EQ(Starts().size(), 1u);
  EXPECT_EQ(ListFolder(fds)->size(), open);
  EXPECT_EQ(*ReadFile(absl::StrCat("/proc/", Starts()[0], "/comm"), 100), "switchyard-fm\n");
}

TEST_F(HelperTest, AHelperThatSomebodyKilledWhileIdleIsReplacedSilently) {
  Up();
  FabricHelper helper(Options());
  ASSERT_TRUE(helper.ReadPartitions().ok());
  const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, Starts()[0], 0));
  ASSERT_GE(pidfd, 0);
  ASSERT_EQ(::kill(Starts()[0], SIGKILL), 0);
  pollfd ended{pidfd, POLLIN, 0};
  ASSERT_EQ(::poll(&ended, 1, -1), 1);
  ::close(pidfd);
  EXPECT_TRUE(helper.ReadPartitions().ok());
  EXPECT_EQ(Starts().size(), 2u);
}

TEST_F(HelperTest, AnExecutableThatIsMissingOrNoHelperIsAnError) {
  HelperOptions options = Options();
  options.command = {"/nonexistent/helper"};
  FabricHelper missing(options);
  ExpectFailure(missing, StatusCode::kInternal, "/nonexistent/helper");
  options.command = {"/bin/false"};
  FabricHelper wrong(options);
  ExpectFailure(wrong, StatusCode::kAborted, "exit 1");
}

// The agent may die by SIGKILL in the middle of a call.
TEST_F(HelperTest, DiesWithItsParentEvenWhileTheLibraryHangs) {
  Up();
  FabricManagerFaults faults;
  faults.hang = FabricManagerFaults::Hang::kList;
  manager_->SetFaults(faults);
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  UniqueFd ours(ends[0]);
  UniqueFd theirs(ends[1]);
  Result<ChildProcess> process = ChildProcess::Start({{kHelper}, theirs.get()});
  ASSERT_TRUE(process.ok()) << process.status();
  theirs.reset();
  HelperRequest request;
  request.library = kNvfm;
  request.address = Options().address;
  request.connect_timeout = kLong;
  ASSERT_TRUE(SendMessage(ours.get(), EncodeRequest(request), absl::InfiniteDuration()).ok());
  ASSERT_TRUE(manager_->AwaitHeldCall(kLong));

  const UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, process->pid(), 0)));
  ASSERT_TRUE(pidfd.valid());
  ours.reset();
  pollfd ended{pidfd.get(), POLLIN, 0};
  ASSERT_EQ(::poll(&ended, 1, static_cast<int>(absl::ToInt64Milliseconds(kLong))), 1);
  EXPECT_EQ(process->Kill(), "exit 0");
}

}  // namespace
}  // namespace switchyard::fabric
