// SPDX-License-Identifier: Apache-2.0
#include "tenancy/enforcement.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "tenancy/pci_holders.h"

namespace switchyard::tenancy {
namespace {

constexpr absl::string_view kBootId = "proc/sys/kernel/random/boot_id";
constexpr size_t kMaxBegan = 64;

std::vector<TenancyDevice> GpusOf(std::span<const Resolved> devices) {
  std::vector<TenancyDevice> gpus;
  for (const Resolved& resolved : devices) {
    if (!resolved.gpus.empty()) gpus.push_back(resolved.nodes);
  }
  return gpus;
}

}  // namespace

BootId BootOf(const Options& options, EventSink& events) {
  if (options.enforce.boot.known()) return options.enforce.boot;
  const std::string path = options.host_root.Path(kBootId);
  const Result<std::string> text = ReadFile(path, 256);
  const Result<BootId> boot = text.ok() ? BootId::Parse(*text) : text.status();
  if (boot.ok()) return *boot;
  events.Report({"boot_id_unreadable",
                 Severity::kError,
                 absl::StrCat(path, ": ", boot.status().message(),
                              "; a reboot would go unnoticed, so nothing is granted; is proc/ "
                              "mounted under paths.hostRoot?"),
                 {}});
  return {};
}

Enforcement::Enforcement(const Options& options, const Parts& parts, const BootId& boot)
    : journal_(parts.store == nullptr ? nullptr : std::make_unique<StoreJournal>(*parts.store)),
      holders_(std::make_unique<PciHolders>(options.host_root, *parts.clock)) {
  EnforcerOptions enforce = options.enforce;
  enforce.boot = boot;
  EnforcerParts given;
  given.clock = parts.clock;
  given.events = parts.events;
  given.journal = journal_.get();
  given.fabric = parts.control;
  given.holders = parts.holders == nullptr ? holders_.get() : parts.holders;
  given.who = parts.who;
  given.restart_is_warm = parts.restart_is_warm;
  enforcer_ = std::make_unique<Enforcer>(enforce, std::move(given));
  if (const Status loaded = enforcer_->Load(); !loaded.ok()) {
    parts.events->Report({"journal_unusable",
                          Severity::kError,
                          absl::StrCat(loaded.message(), ": nothing is granted or released"),
                          {}});
  }
}

void Enforcement::SetBoard(const pci::Inventory* inventory, const FabricKnowledge& fabric) {
  enforcer_->ObserveBoard(MakeBoard(inventory, fabric.map),
                          std::make_shared<const fabric::ModuleMap>(fabric.map));
}

void Enforcement::SetList(const FabricState& state, std::uint64_t generation) {
  enforcer_->ObserveFabric(state.LastRead(), generation);
}

std::shared_ptr<const FabricKnowledge> Enforcement::Overlay(
    const std::shared_ptr<const FabricKnowledge>& fabric) const {
  const std::shared_ptr<const fabric::PartitionTable> table = enforcer_->Table();
  if (table == nullptr) return fabric;
  const Status status = enforcer_->FabricStatus();
  auto overlaid = std::make_shared<FabricKnowledge>(*fabric);
  overlaid->known = true;
  overlaid->up = status.ok();
  overlaid->error = std::string(status.message());
  overlaid->table = *table;
  return overlaid;
}

Result<std::optional<Acquired>> Enforcement::Acquire(std::span<const Resolved> devices,
                                                     std::optional<absl::Duration> asked) {
  TenancyRequest request;
  request.asked = asked;
  request.devices = GpusOf(devices);
  if (request.devices.empty()) return std::optional<Acquired>();
  ASSIGN_OR_RETURN(const Acquired acquired, enforcer_->Acquire(request));
  return std::optional<Acquired>(acquired);
}

void Enforcement::Began(std::uint64_t grant, const Acquired& acquired) {
  const absl::MutexLock lock(&mutex_);
  began_[grant] = acquired;
  if (began_.size() > kMaxBegan) began_.erase(began_.begin());
}

void Enforcement::Release(std::uint64_t grant) {
  Acquired acquired;
  {
    const absl::MutexLock lock(&mutex_);
    const auto found = began_.find(grant);
    if (found == began_.end()) return;
    acquired = found->second;
    began_.erase(found);
  }
  enforcer_->Undo(acquired);
}

Status Enforcement::PreStart(std::span<const Resolved> devices) {
  const std::vector<TenancyDevice> gpus = GpusOf(devices);
  return gpus.empty() ? OkStatus() : enforcer_->PreStart(gpus);
}

}  // namespace switchyard::tenancy
