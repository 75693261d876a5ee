// SPDX-License-Identifier: Apache-2.0
#pragma once

// The model Fabric Manager: the table of a published board and which partitions are active in
// truth. It may be down, hang, fail, crash or lie, and what was asked of it may happen long after
// its caller gave up, though no later than one `fabric.timeout` after that: what Switchyard
// assumes. It refuses to activate what overlaps an active partition, as the real one does.

#include <functional>
#include <vector>

#include "fabric/fabric_control.h"
#include "fabric/module_set.h"
#include "tests/enforce/hardware.h"
#include "tests/enforce/stage.h"

namespace switchyard::enforce_sim {

inline constexpr std::int64_t kFabricTimeoutMs = 15'000;
inline constexpr std::int64_t kWarmWindowMs = 60'000;
inline constexpr int kWaitsCode = -8;  // of a call, while the active list is waited for

class FabricModel final : public fabric::FabricControl {
 public:
  enum class Life : std::uint8_t { kUp, kDown, kWaiting, kWrongMode };
  enum class By : std::uint8_t { kAgent, kLate, kOutsider };
  struct Row {
    int id = 0;
    fabric::ModuleSet modules;
    bool active = false;
    By changed_by = By::kOutsider;  // its last change
    // Active and not ours to clean up: an outsider's, or forgotten with the disk.
    bool found = false;
    bool was_found = false;   // when it was last active
    bool told = false;        // in a list that was given since its last change
    bool known_lost = false;  // an agent wrote down that it was lost, and nothing else since
  };
  struct Late {
    std::int64_t at = 0;
    fabric::ModuleSet modules;
    bool active = false;
    bool orphan = false;  // the disk lost what was known of it
  };

  FabricModel(Stage& stage, const fabric::PartitionTable& board);

  // ---- FabricControl
  Result<fabric::FabricList> ReadPartitions() override;
  Result<fabric::ModuleEntries> ReadModuleIds() override { return fabric::ModuleEntries{}; }
  Result<fabric::FabricList> Activate(int id, absl::Duration within) override {
    return Change(id, true, absl::ToInt64Milliseconds(within));
  }
  Result<fabric::FabricList> Deactivate(int id, absl::Duration within) override {
    return Change(id, false, absl::ToInt64Milliseconds(within));
  }
  Result<fabric::FabricList> SetActivated(std::span<const int> ids) override;

  // ---- truth and its changes
  [[nodiscard]] const std::vector<Row>& rows() const { return rows_; }
  [[nodiscard]] Row* FindExact(fabric::ModuleSet modules);
  [[nodiscard]] Row* Find(int id);
  [[nodiscard]] const std::vector<Late>& late() const { return late_; }
  void SetActive(Row& row, bool active, By by);
  // The call in progress means another partition: its caller could not know.
  void Excuse() { excused_ = true; }
  void OrphanLate(fabric::ModuleSet modules);
  // All partitions inactive; down for `down_ms`. Another table: other ids, and perhaps fewer sets.
  void ColdRestart(std::int64_t down_ms, bool another_table);
  void WarmRestart(std::int64_t down_ms);
  void GoDown(std::int64_t down_ms);  // kNever: until Heal
  void SetWrongMode(bool wrong);
  void Heal();
  void ComeUp();
  void Tick();
  [[nodiscard]] std::int64_t NextTick() const;

  Life life = Life::kUp;
  std::int64_t up_since = 0;  // of kUp
  int flaky_percent = 0;      // of changes
  int slow_percent = 0;       // of reads that get no answer
  int lazy_percent = 40;      // of changes that take up to two seconds
  int late_percent = 0;       // of changes that nearly take too long
  std::uint64_t asked = 0;
  std::function<void(const Row&)> before_activate;
  std::function<void(const Row&)> before_deactivate;
  std::function<void(const Row&, bool)> before_late;
  std::function<void(std::span<const int>)> before_list;

 private:
  fabric::FabricList Tell();
  enum class Effect : std::uint8_t { kNone, kNow, kLate };
  // `patience_ms`: until the caller gives up.
  Result<fabric::FabricList> Change(int id, bool active, std::int64_t patience_ms);
  Result<fabric::FabricList> Fail(Row& row, bool active, std::int64_t patience_ms);
  Result<fabric::FabricList> Hang(Row& row, bool active, std::int64_t patience_ms);
  void Apply(Effect effect, Row& row, bool active, std::int64_t patience_ms = 0);
  Effect AnyEffect() { return static_cast<Effect>(stage_.random.Below(3)); }
  [[nodiscard]] Status NotUp(absl::string_view function) const;
  [[nodiscard]] bool Overlapped(const Row& row) const;
  void Relist();

  Stage& stage_;
  std::vector<Row> rows_;
  const std::vector<Row> all_;
  fabric::FabricList list_;
  std::vector<Late> late_;
  bool excused_ = false;
  std::int64_t until_ = kNever;  // of kDown or kWaiting
  Life next_ = Life::kUp;        // after kDown
};

}  // namespace switchyard::enforce_sim
