// SPDX-License-Identifier: Apache-2.0
#include "kube/device_memory.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace switchyard::kube {
namespace {
constexpr char kDeviceKind[] = "device";
constexpr char kNameKind[] = "name";
constexpr char kFormerKind[] = "former_name";
constexpr std::size_t kMaxFormer = 16;

std::string KeyOf(std::uint16_t device) { return absl::StrFormat("%04x", device); }

}  // namespace

DeviceMemory::DeviceMemory(store::Store* store, EventSink& events)
    : store_(store), events_(events) {
  if (store_ == nullptr) return;
  LoadDevices();
  LoadNames();
}

void DeviceMemory::LoadDevices() {
  const auto stored = store_->List(kDeviceKind);
  ReportIfFailed(stored.status());
  if (!stored.ok()) return;
  for (const auto& [address, json] : *stored) {
    Result<RememberedDevice> device = RememberedDeviceFromJson(address, json);
    if (device.ok()) {
      const PciAddress its = device->numbers.address;
      devices_.emplace(its, *std::move(device));
      continue;
    }
    // It is learned anew when the device is next seen on a vfio driver.
    ReportIfFailed(device.status());
    ReportIfFailed(store_->Remove(kDeviceKind, address));
  }
}

void DeviceMemory::LoadNames() {
  auto stored = store_->List(kNameKind);
  ReportIfFailed(stored.status());
  if (stored.ok()) names_ = *std::move(stored);
  const auto former = store_->List(kFormerKind);
  ReportIfFailed(former.status());
  if (!former.ok()) return;
  for (const auto& [key, names] : *former)
    former_[key] = absl::StrSplit(names, ' ', absl::SkipEmpty());
}

void DeviceMemory::Keep(const RememberedDevice& device) {
  const auto known = devices_.find(device.numbers.address);
  if (known != devices_.end() && known->second == device) return;
  devices_[device.numbers.address] = device;
  if (store_ == nullptr) return;
  ReportIfFailed(
      store_->Put(kDeviceKind, device.numbers.address.ToString(), RememberedDeviceToJson(device)));
}

void DeviceMemory::Forget(const PciAddress& address) {
  if (devices_.erase(address) == 0 || store_ == nullptr) return;
  ReportIfFailed(store_->Remove(kDeviceKind, address.ToString()));
}

std::optional<std::string> DeviceMemory::KeepName(std::uint16_t device, const std::string& name) {
  const std::string key = KeyOf(device);
  const auto [known, is_new] = names_.try_emplace(key, name);
  if (!is_new && known->second == name) return std::nullopt;
  const std::string former = std::exchange(known->second, name);
  if (store_ != nullptr) ReportIfFailed(store_->Put(kNameKind, key, name));
  if (is_new) return std::nullopt;
  KeepFormer(key, former);
  return former;
}

void DeviceMemory::KeepFormer(const std::string& key, const std::string& name) {
  std::vector<std::string>& names = former_[key];
  std::erase(names, name);
  if (names.size() >= kMaxFormer) names.erase(names.begin());
  names.push_back(name);
  // A resource name has no blank.
  if (store_ != nullptr) ReportIfFailed(store_->Put(kFormerKind, key, absl::StrJoin(names, " ")));
}

std::vector<std::string> DeviceMemory::FormerNames(std::uint16_t device) const {
  const auto found = former_.find(KeyOf(device));
  return found == former_.end() ? std::vector<std::string>{} : found->second;
}

void DeviceMemory::ReportIfFailed(const Status& status) {
  if (status.ok()) return;
  events_.Report({"store_failed",
                  Severity::kError,
                  absl::StrCat("devices and resource names are not remembered: ",
                               absl::string_view(status.message()),
                               "; they are kept until the agent ends: check the state folder"),
                  {}});
}

}  // namespace switchyard::kube
