// SPDX-License-Identifier: Apache-2.0
#pragma once

// The Enforcer with its parts on a real node: the journal in the store, holders in /proc, the boot
// id of the kernel. Translates between the core's words (Grant, Inventory, FabricKnowledge) and its
// own. Any thread.

#include <cstdint>
#include <map>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "tenancy/enforcer.h"
#include "tenancy/fabric_state.h"
#include "tenancy/resolve.h"
#include "tenancy/store_journal.h"
#include "tenancy/tenancies.h"

namespace switchyard::tenancy {

// The kernel's boot id below the host root, unless the options have one. Unknown if it can't be
// read (event boot_id_unreadable): then the Enforcer grants nothing.
[[nodiscard]] BootId BootOf(const Options& options, EventSink& events);

class Enforcement {
 public:
  // Loads the journal; what is wrong with it is reported and kept (Enforcer::JournalStatus).
  Enforcement(const Options& options, const Parts& parts, const BootId& boot);

  [[nodiscard]] Enforcer& enforcer() { return *enforcer_; }

  void SetBoard(const pci::Inventory* inventory, const FabricKnowledge& fabric);
  // After FabricState::Refresh, whose reading began at `generation`.
  void SetList(const FabricState& state, std::uint64_t generation);
  // The same knowledge with our own changes in it.
  [[nodiscard]] std::shared_ptr<const FabricKnowledge> Overlay(
      const std::shared_ptr<const FabricKnowledge>& fabric) const;

  // The devices that are GPUs; none of them: nothing is needed, and nothing returned.
  [[nodiscard]] Result<std::optional<Acquired>> Acquire(std::span<const Resolved> devices,
                                                        std::optional<absl::Duration> asked);
  // Remembers, for the latest 64 grants, which began a tenancy.
  void Began(std::uint64_t grant, const Acquired& acquired);
  void Release(std::uint64_t grant);
  [[nodiscard]] Status PreStart(std::span<const Resolved> devices);

 private:
  std::unique_ptr<StoreJournal> journal_;
  std::unique_ptr<HolderSource> holders_;
  std::unique_ptr<Enforcer> enforcer_;
  absl::Mutex mutex_;
  std::map<std::uint64_t, Acquired> began_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace switchyard::tenancy
