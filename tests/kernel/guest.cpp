// SPDX-License-Identifier: Apache-2.0
#include "tests/kernel/guest.h"

#include <fcntl.h>
#include <linux/netlink.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/clock.h"

namespace switchyard::kernel_test {
namespace {

constexpr char kBus[] = "/sys/bus/pci/devices";

std::string LinkName(const std::string& path) {
  std::error_code error;
  return std::filesystem::read_symlink(path, error).filename().string();
}

// The letter of /proc/PID/stat's third field: S, D, Z... 0 if there is no such process.
char StateOf(pid_t pid) {
  const std::string stat = Read(absl::StrCat("/proc/", pid, "/stat"));
  const size_t end = stat.rfind(')');
  return end == std::string::npos || end + 2 >= stat.size() ? '\0' : stat[end + 2];
}

}  // namespace

std::string Read(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return std::string(absl::StripTrailingAsciiWhitespace(text.str()));
}

int Write(const std::string& path, const std::string& text) {
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd.valid()) return errno;
  return ::write(fd.get(), text.data(), text.size()) < 0 ? errno : 0;
}

bool Exists(const std::string& path) { return std::filesystem::exists(path); }

std::set<std::string> Names(const std::string& folder) {
  std::set<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

std::string SysfsFolder(const std::string& address) { return absl::StrCat(kBus, "/", address); }

std::vector<std::string> Functions(const std::string& ids) {
  std::vector<std::string> found;
  for (const std::string& address : Names(kBus)) {
    const std::string folder = SysfsFolder(address);
    const std::string vendor = Read(folder + "/vendor");
    const std::string device = Read(folder + "/device");
    if (absl::StrCat("0x", ids.substr(0, 4)) == vendor &&
        absl::StrCat("0x", ids.substr(5)) == device)
      found.push_back(address);
  }
  return found;
}

std::string Driver(const std::string& address) {
  return LinkName(SysfsFolder(address) + "/driver");
}

int Group(const std::string& address) {
  int group = -1;
  const std::string name = LinkName(SysfsFolder(address) + "/iommu_group");
  return absl::SimpleAtoi(name, &group) ? group : -1;
}

std::string GroupNode(const std::string& address) {
  return absl::StrCat("/dev/vfio/", Group(address));
}

std::pair<std::string, std::string> InOneGroup(const std::string& ids, const std::string& other) {
  for (const std::string& a : Functions(ids)) {
    for (const std::string& b : Functions(other)) {
      if (a < b && Group(a) == Group(b)) return {a, b};
    }
  }
  ADD_FAILURE() << "no " << ids << " and " << other << " in one group";
  return {};
}

std::string Cdev(const std::string& address) {
  for (const std::string& name : Names(SysfsFolder(address) + "/vfio-dev")) return name;
  return "";
}

std::string CdevNode(const std::string& address) {
  return absl::StrCat("/dev/vfio/devices/", Cdev(address));
}

int Unbind(const std::string& address) {
  return Write(SysfsFolder(address) + "/driver/unbind", address);
}

void Bind(const std::string& address, const std::string& driver) {
  ASSERT_EQ(Write(SysfsFolder(address) + "/driver_override", driver + "\n"), 0) << address;
  if (Driver(address) == driver) return;
  const int unbound = Driver(address).empty() ? 0 : Unbind(address);
  ASSERT_EQ(unbound, 0) << address;
  if (driver.empty()) return;
  ASSERT_EQ(Write("/sys/bus/pci/drivers_probe", address), 0) << address;
  ASSERT_EQ(Driver(address), driver) << address;
}

void TellQemu(const std::string& command) { ASSERT_EQ(Write("/dev/ttyS2", command + "\n"), 0); }

std::vector<std::string> TryToOpen(const std::vector<std::string>& steps) {
  auto process = sim::Process::Start(std::vector<std::string>{"/lab/vfio_open"} + steps);
  if (!process.ok()) {
    ADD_FAILURE() << process.status();
    return {};
  }
  EXPECT_TRUE((*process)->Wait(kPatience).has_value()) << "vfio_open hangs";
  process.value()->WaitForLine("\n", kPatience);  // in no line: until the output's end
  return absl::StrSplit((*process)->Output(), '\n', absl::SkipEmpty());
}

std::unique_ptr<sim::Process> Hold(std::vector<std::string> steps) {
  auto process = sim::Process::Start(std::vector<std::string>{"/lab/vfio_open"} + std::move(steps) +
                                     std::vector<std::string>{"hold"});
  if (!process.ok()) {
    ADD_FAILURE() << process.status();
    return nullptr;
  }
  if (!(*process)->WaitForLine("holding", kPatience).has_value()) {
    ADD_FAILURE() << "not opened: " << (*process)->Output();
    return nullptr;
  }
  return *std::move(process);
}

std::vector<std::string> Legacy(const std::string& address) {
  return {"container", "group=" + GroupNode(address), "attach", "device=" + address};
}

std::vector<std::string> ByCdev(const std::string& address) {
  return {"iommufd", "cdev=" + CdevNode(address), "bind", "ioas"};
}

std::vector<std::string> operator+(std::vector<std::string> steps,
                                   const std::vector<std::string>& more) {
  steps.insert(steps.end(), more.begin(), more.end());
  return steps;
}

Writer::Writer(const std::string& path, const std::string& text) : pid_(::fork()) {
  if (pid_ == 0) ::_exit(Write(path, text));
}

Writer::~Writer() { (void)Wait(); }

bool Writer::Sleeps() {
  for (RealClock clock;;) {
    const char state = StateOf(pid_);
    if (state != 'R') return state == 'S' || state == 'D';
    Wakeup().WaitFor(clock, absl::Milliseconds(1));
  }
}

std::optional<int> Writer::Wait() {
  if (pid_ <= 0) return std::nullopt;
  RealClock clock;
  for (const absl::Duration end = clock.Monotonic() + kPatience; clock.Monotonic() < end;) {
    int status = 0;
    const pid_t got = ::waitpid(pid_, &status, WNOHANG);
    if (got == pid_) {
      pid_ = -1;
      return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    Wakeup().WaitFor(clock, absl::Milliseconds(10));
  }
  return std::nullopt;
}

Events::Events()
    : socket_(::socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_KOBJECT_UEVENT)) {
  sockaddr_nl address = {};
  address.nl_family = AF_NETLINK;
  address.nl_groups = 1;
  EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
}

bool Events::Comes(const std::vector<std::string>& parts, absl::Duration patience) {
  RealClock clock;
  for (const absl::Duration end = clock.Monotonic() + patience; clock.Monotonic() < end;) {
    pollfd readable = {socket_.get(), POLLIN, 0};
    if (::poll(&readable, 1, 100) <= 0) continue;
    char buffer[8192];
    const ssize_t got = ::recv(socket_.get(), buffer, sizeof(buffer), 0);
    if (got <= 0) continue;
    std::string event(buffer, static_cast<size_t>(got));
    std::replace(event.begin(), event.end(), '\0', ' ');
    absl::StrAppend(&seen_, event, "\n");
    if (std::all_of(parts.begin(), parts.end(),
                    [&](const std::string& part) { return absl::StrContains(event, part); }))
      return true;
  }
  return false;
}

void Events::WaitFor(const std::vector<std::string>& parts) {
  EXPECT_TRUE(Comes(parts, kPatience))
      << "no event with " << absl::StrJoin(parts, " and ") << "; these came:\n"
      << seen_;
}

void Fixture::SetUp() {
  gpus_ = Functions(kH200);
  ASSERT_EQ(gpus_.size(), 4u);
  for (const std::string& gpu : gpus_) Bind(gpu, "vfio-pci");
  for (const char* ids : {kRtx, kAudio, kNvSwitch}) {
    for (const std::string& function : Functions(ids)) Bind(function, "");
  }
  for (const std::string& disk : Functions(kDisk)) Bind(disk, "nvme");
}

}  // namespace switchyard::kernel_test
