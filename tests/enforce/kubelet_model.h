// SPDX-License-Identifier: Apache-2.0
#pragma once

// The model kubelet: its pods, whose devices it believes are whose (the checkpoint), and what its
// PodResources say of that, which may be late, incomplete after a start, none while the API server
// is out of reach, or nothing at all. A claim is a pod whose devices kubelet's device manager does
// not know.

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "tenancy/assignments.h"
#include "tests/enforce/hardware.h"
#include "tests/enforce/stage.h"

namespace switchyard::enforce_sim {

struct Container {
  fabric::ModuleSet modules;
  std::vector<tenancy::TenancyDevice> granted;  // the nodes it was given
};

struct Pod {
  int uid = 0;
  std::string name;  // of a claim: its key
  bool claim = false;
  Container init;                // no modules: none
  std::vector<Container> mains;  // one or two
  bool init_done = false;
  bool recorded = false;         // by kubelet, or prepared: it may use its devices
  std::int64_t listed_from = 0;  // kubelet writes it down a little later
  bool deleting = false;
  bool restartable = true;  // false: its containers never start again
  bool revoked = false;     // taken away by the operator's force
  bool readmit = false;     // after a reboot
  bool owes = false;        // a claim that must still be unprepared
  int told = 0;             // the incarnation of the agent that last saw it in a List

  [[nodiscard]] fabric::ModuleSet modules() const {
    fabric::ModuleSet all;
    for (const Container& c : mains) all = all | c.modules;
    return all;
  }
};

class KubeletModel final : public tenancy::AssignmentSource {
 public:
  KubeletModel(Stage& stage, Hardware& hardware) : stage_(stage), hardware_(hardware) {}

  // ---- AssignmentSource
  Result<tenancy::AssignmentView> Read() override;
  Result<bool> StillHas(const tenancy::Owner& owner, std::span<const PciAddress> devices) override;

  // ---- truth and its changes
  [[nodiscard]] Pod* FindByUid(int uid);
  [[nodiscard]] Pod* FindByName(const std::string& name);  // that kubelet knows
  // What kubelet will not hand out again.
  [[nodiscard]] fabric::ModuleSet Used() const;
  // What a pod has: by right, or because a process of it still has it open.
  [[nodiscard]] fabric::ModuleSet LiveOf(const Pod& pod) const;
  [[nodiscard]] fabric::ModuleSet Live() const;
  // Whatever was granted has been written down.
  void Settle();
  void Restart(bool incomplete, bool cut_off);
  // The agent remembers nothing of the kubelets before.
  void NewAgent() { knowing_ = 0; }
  // It knows no pods but static ones: it starts and ends none, and admits none.
  [[nodiscard]] bool CutOff() const { return cut_off_until > stage_.now(); }
  void LoseCheckpoint();
  void Reboot();
  // Forgets pods that kubelet does not know and that hold nothing.
  void Bury();

  std::deque<Pod> pods;  // references stay good while one is added
  bool deaf = false;     // nothing answers
  bool others = true;    // pods without devices, as each node has them, almost
  std::int64_t cut_off_until = 0;
  std::int64_t incomplete_until = 0;
  std::map<int, fabric::ModuleSet> named;  // by the last Read: uids

 private:
  [[nodiscard]] bool Missing(const Pod& pod) const;
  int life_ = 1;     // of kubelet
  int knowing_ = 0;  // the life in which a list named a pod, as the agent saw it
  Stage& stage_;
  Hardware& hardware_;
};

}  // namespace switchyard::enforce_sim
