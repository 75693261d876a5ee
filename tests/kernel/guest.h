// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the tests do in the guest: read and write the kernel's sysfs as an operator's shell would
// (without the product's code, which is what is tested), and run the program that opens devices as
// a VM's monitor does. Root, one thread; nothing is put back by itself: Fixture::SetUp does it.

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/unique_fd.h"
#include "sim/process/process.h"

namespace switchyard::kernel_test {

// Of every wait for an event. Software emulation on a busy machine is slow.
inline constexpr absl::Duration kPatience = absl::Seconds(90);

inline constexpr char kH200[] = "10de:2335";
inline constexpr char kNvSwitch[] = "10de:22a3";
inline constexpr char kRtx[] = "10de:2684";
inline constexpr char kAudio[] = "10de:22bb";
inline constexpr char kDisk[] = "1b36:0010";

// A file without the white space at its end; empty if it can't be read.
std::string Read(const std::string& path);
// 0 or errno, of open or write.
int Write(const std::string& path, const std::string& text);
bool Exists(const std::string& path);
std::set<std::string> Names(const std::string& folder);  // empty if it is not there

std::string SysfsFolder(const std::string& address);
// Addresses of the functions with these ids ("10de:2335"), sorted.
std::vector<std::string> Functions(const std::string& ids);
std::string Driver(const std::string& address);  // empty: none
int Group(const std::string& address);           // -1: none
std::string GroupNode(const std::string& address);
// The first two functions, in the order of addresses, that have these ids and share a group; a
// failed test if the board has none.
std::pair<std::string, std::string> InOneGroup(const std::string& ids, const std::string& other);
std::string Cdev(const std::string& address);  // "vfio3"; empty: none
std::string CdevNode(const std::string& address);

// driver_override, unbind, drivers_probe; empty: no driver. Fails the test if it ends elsewhere.
void Bind(const std::string& address, const std::string& driver);
int Unbind(const std::string& address);  // errno

// One line to QEMU's monitor ("device_del gpu3").
void TellQemu(const std::string& command);

// Runs /lab/vfio_open with these steps to its end: what the kernel answered, line by line.
std::vector<std::string> TryToOpen(const std::vector<std::string>& steps);
// The same until it holds what it opened. Null, and a failed test, if it ended before.
std::unique_ptr<sim::Process> Hold(std::vector<std::string> steps);
// The steps of a monitor: to the opened device.
std::vector<std::string> Legacy(const std::string& address);
std::vector<std::string> ByCdev(const std::string& address);
std::vector<std::string> operator+(std::vector<std::string> steps,
                                   const std::vector<std::string>& more);

// A write to sysfs that may block, in a process of its own.
class Writer {
 public:
  Writer(const std::string& path, const std::string& text);
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  // True once the process sleeps in the kernel; false if it has ended.
  bool Sleeps();
  // errno of the write, 0 if it succeeded; nothing if it did not return in time.
  std::optional<int> Wait();

 private:
  pid_t pid_;
};

// The kernel's events since this was made.
class Events {
 public:
  Events();
  // Waits for one whose text ("remove@/devices/... SUBSYSTEM=vfio-dev ...") holds all `parts`, or
  // fails the test. Those before it are passed over.
  void WaitFor(const std::vector<std::string>& parts);
  // True if one comes within `patience`.
  bool Comes(const std::vector<std::string>& parts, absl::Duration patience);

 private:
  UniqueFd socket_;
  std::string seen_;  // the events read so far, the last one last
};

// Before each test: the four H200 on vfio-pci, every other NVIDIA function on no driver, the disks
// on nvme.
class Fixture : public ::testing::Test {
 protected:
  void SetUp() override;

  std::vector<std::string> gpus_;  // the H200, by address
};

}  // namespace switchyard::kernel_test
