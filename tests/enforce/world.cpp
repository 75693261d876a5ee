// SPDX-License-Identifier: Apache-2.0
// The node, the agent's life, and time.
#include "tests/enforce/world.h"

#include <algorithm>

#include "sim/board/built_in_boards.h"

namespace switchyard::enforce_sim {

using fabric::ModuleSet;

namespace {

constexpr std::int64_t kAnswerKeepsMs = 20'000;

}  // namespace

const std::vector<BoardOfRun>& Boards() {
  static const std::vector<BoardOfRun>* const boards = [] {
    auto* made = new std::vector<BoardOfRun>;
    for (const auto& [name, text] : sim::BuiltInBoards())
      made->push_back({name, fabric::ParseBoard(text, name).value()});
    return made;
  }();
  return *boards;
}

World::World(std::uint64_t seed, bool tracing)
    : stage_(seed, tracing),
      board_(Boards()[static_cast<size_t>(stage_.random.Below(static_cast<int>(Boards().size())))]),
      hardware_(stage_),
      fabric_(stage_, board_.table),
      journal_(stage_),
      kubelet_(stage_, hardware_),
      rules_(stage_, hardware_, fabric_, journal_, kubelet_),
      sink_(stage_) {
  stage_.pass = [this](std::int64_t ms) { Pass(ms); };
  MakeNode();
}

void World::MakeNode() {
  Random& random = stage_.random;
  for (bool* fault : {&profile_.crashes, &profile_.fabric_fails, &profile_.fabric_restarts,
                      &profile_.outsiders, &profile_.journal_fails, &profile_.journal_lost,
                      &profile_.kubelet_fails, &profile_.checkpoint_lost, &profile_.reboots,
                      &profile_.odd_processes, &profile_.devices_vanish, &profile_.map_breaks,
                      &profile_.operators, &profile_.claims, &profile_.delays})
    *fault = random.Percent(40);
  options_.boot = rules_.boot = {1, 1};
  restart_is_warm_ = random.Percent(50);
  options_.reactivate_at_start = random.Percent(30);
  kubelet_.others = random.Percent(60);
  hardware_.iommufd = random.Percent(40);
  const bool companions = random.Percent(20);
  // Now and then the GPUs of one pair share an IOMMU group and are one device.
  ModuleSet shared;
  if (random.Percent(10)) {
    for (const fabric::Partition& p : board_.table.partitions) {
      if (p.modules.size() == 2 && shared.empty()) shared = p.modules;
    }
  }
  int group = 10;
  for (int m = fabric::kMinModule; m <= fabric::kMaxModule; ++m) {
    if (!board_.table.modules.Contains(m)) continue;
    ModuleSet modules = {m};
    if (shared.Contains(m)) {
      if (shared.ToVector().front() != m) continue;
      modules = shared;
    }
    Gpu gpu;
    gpu.address.bus = static_cast<std::uint8_t>(m * 8);
    gpu.modules = modules;
    gpu.group = group++;
    gpu.cdev = group * 4;
    gpu.companion = companions;
    hardware_.gpus.push_back(gpu);
  }
  MakeMap();
  if (random.Percent(25)) Predecessor();
  stage_.Tell("board ", board_.name, restart_is_warm_ ? ", warm" : ", cold",
              options_.reactivate_at_start ? ", Kata" : "");
  StartAgent();
}

void World::MakeMap() {
  fabric::ModuleMap::Input input;
  input.files.emplace_back();
  for (const Gpu& gpu : hardware_.gpus) {
    if (!gpu.mapped) continue;
    const std::vector<int> modules = gpu.modules.ToVector();
    for (const int module : modules) {
      PciAddress function = gpu.address;
      function.function = static_cast<std::uint8_t>(module - modules.front());
      input.files.front().second[function] = module;
    }
  }
  map_ = std::make_shared<const fabric::ModuleMap>(fabric::ModuleMap::Join(input));
}

void World::Run(int operations) {
  for (operation_ = 1; operation_ <= operations && !stage_.broken; ++operation_) {
    if (enforcer_ == nullptr && stage_.random.Percent(30)) StartAgent();
    const bool armed = profile_.crashes && stage_.random.Percent(10);
    if (armed) stage_.ArmCrash(stage_.random.Between(1, 12));
    Step();
    if (armed) stage_.Disarm();
    UnprepareOwed();
    kubelet_.Bury();
    rules_.Touch();
    rules_.Always();
  }
  if (!stage_.broken) End();
}

// ---- the agent ---------------------------------------------------------------------------------

void World::StartAgent() {
  for (int i = 0; i < 3 && enforcer_ == nullptr; ++i) {
    ++incarnation_;
    stage_.Tell("the agent starts");
    tenancy::EnforcerParts parts;
    parts.clock = &stage_.clock;
    parts.events = &sink_;
    parts.journal = &journal_;
    parts.fabric = &fabric_;
    parts.holders = &hardware_;
    parts.assignments = &kubelet_;
    parts.restart_is_warm = [this] { return restart_is_warm_; };
    options_.boot = rules_.boot;
    enforcer_ = std::make_unique<tenancy::Enforcer>(options_, std::move(parts));
    rules_.enforcer = enforcer_.get();
    rules_.NothingTold();
    kubelet_.NewAgent();
    const bool up = Ask(Cause::kObserving, 0, [&](tenancy::Enforcer& enforcer) {
      (void)enforcer.Load();
      if (remembered_) enforcer.ObserveRememberedList(*remembered_);
      enforcer.ObserveBoard(hardware_.MakeBoard(), map_);
    });
    if (!up) continue;
    if (stage_.random.Percent(70)) Probe();
    if (stage_.random.Percent(70)) List();
  }
}

void World::KillAgent(const char* why) {
  if (enforcer_ == nullptr) return;
  if (why != nullptr) stage_.Tell("the agent is killed: ", why);
  ++crashes_;
  stage_.Disarm();
  rules_.enforcer = nullptr;
  enforcer_.reset();
  view_.reset();
  list_.reset();
}

void World::ShowBoard() {
  Ask(Cause::kObserving, 0,
      [&](tenancy::Enforcer& enforcer) { enforcer.ObserveBoard(hardware_.MakeBoard(), map_); });
}

// What was read before, and may be old by now.
void World::Deliver() {
  if (list_) {
    const PendingList pending = *std::move(list_);
    list_.reset();
    // As long as another request may hold the Enforcer, and no longer.
    if (stage_.now() - pending.read > kAnswerKeepsMs) return;
    Ask(Cause::kObserving, 0, [&](tenancy::Enforcer& enforcer) {
      if (pending.list.ok()) remembered_ = *pending.list;
      rules_.answer_waits = fabric::FabricCodeOf(pending.list.status()) == kWaitsCode;
      enforcer.ObserveFabric(pending.list, pending.generation);
      rules_.list_read = rules_.list_read || enforcer.FabricStatus().ok();
    });
    rules_.answer_waits = false;
  }
  if (view_) {
    PendingView pending = *std::move(view_);
    view_.reset();
    Ask(Cause::kObserving, 0, [&](tenancy::Enforcer& enforcer) {
      for (Pod& pod : kubelet_.pods) {
        const tenancy::TenancyRecord* record = journal_.FindExact(pod.modules());
        if (record == nullptr || !record->owner || record->owner->key != pod.name) pod.told = 0;
      }
      for (const auto& [uid, modules] : pending.named) {
        if (Pod* pod = kubelet_.FindByUid(uid)) pod->told = incarnation_;
      }
      whole_told_ =
          whole_told_ || absl::ToInt64Milliseconds(pending.began) >= kubelet_.incomplete_until;
      rules_.ToldOfPods(std::move(pending.named), absl::ToInt64Milliseconds(pending.began),
                        pending.view.whole);
      enforcer.ObserveAssignments(std::move(pending.view), pending.began);
    });
  }
}

void World::Probe() {
  Deliver();
  Ask(Cause::kObserving, 0, [&](tenancy::Enforcer& enforcer) {
    const std::uint64_t generation = enforcer.FabricGeneration();
    Result<fabric::FabricList> list = fabric_.ReadPartitions();
    list_ = {std::move(list), generation, stage_.now()};
  });
  if (!profile_.delays || stage_.random.Percent(70)) Deliver();
}

void World::List() {
  Deliver();
  Ask(Cause::kObserving, 0, [&](tenancy::Enforcer& /*enforcer*/) {
    const absl::Duration began = stage_.clock.Monotonic();
    Result<tenancy::AssignmentView> view = kubelet_.Read();
    if (view.ok()) view_ = {*std::move(view), began, kubelet_.named};
  });
  if (!profile_.delays || stage_.random.Percent(70)) Deliver();
}

void World::Reconcile() {
  const Rules::Seen seen = rules_.SeenTenancies();
  const std::uint64_t failures = journal_.failures;
  const bool done =
      Ask(Cause::kReconcile, 0, [](tenancy::Enforcer& enforcer) { enforcer.Reconcile(); });
  if (done && journal_.failures == failures) rules_.Wrote(seen);
}

// What the agent does every few seconds.
void World::Turn(std::int64_t ms) {
  Pass(ms);
  Probe();
  List();
  Reconcile();
}

// ---- time --------------------------------------------------------------------------------------

void World::Pass(std::int64_t ms) {
  const std::int64_t until = stage_.now() + ms;
  for (;;) {
    const std::int64_t next = std::min(hardware_.NextTick(), fabric_.NextTick());
    stage_.clock.now_ms = std::clamp(next, stage_.now(), until);
    rules_.Touch();
    if (next > until) return;
    if (hardware_.Tick()) Collect();
    fabric_.Tick();
  }
}

void World::Collect() {
  for (const Process& process : hardware_.ended) {
    Pod* pod = kubelet_.FindByUid(process.pod);
    if (pod == nullptr || kubelet_.CutOff()) continue;
    if (!pod->init.modules.empty() && !pod->init_done) {
      pod->init_done = true;
    } else if (pod->deleting || stage_.random.Percent(30)) {
      Forget(*pod);
    }
  }
  hardware_.ended.clear();
}

// ---- operations --------------------------------------------------------------------------------

void World::Step() {
  Random& random = stage_.random;
  if (random.Percent(30)) Pass(random.Between(1, 2000));
  const int dice = random.Below(100);
  stage_.Tell("-- operation ", operation_);
  if (dice < 15) return Admit();
  if (dice < 27) return StartContainer();
  if (dice < 35) return DeletePod();
  if (dice < 38) return EndProcess();
  if (dice < 45) return Probe();
  if (dice < 53) return List();
  if (dice < 60) return Reconcile();
  if (dice < 70) return Turn(random.Between(5, 20) * 1000);
  if (dice < 74) return Pass(random.Between(1, 30) * 1000);
  if (dice < 76) return ShowBoard();
  switch (dice) {
    case 76:
    case 77:
    case 78:
      if (profile_.fabric_fails) FabricTrouble();
      return;
    case 79:
    case 80:
      if (profile_.fabric_restarts) FabricRestart();
      return;
    case 81:
      if (profile_.outsiders) Outsider();
      return;
    case 82:
    case 83:
      if (profile_.journal_fails) JournalTrouble();
      return;
    case 84:
      if (profile_.journal_lost && random.Percent(50)) LoseJournal();
      return;
    case 85:
    case 86:
      if (profile_.kubelet_fails) KubeletTrouble();
      return;
    case 87:
      if (profile_.checkpoint_lost && random.Percent(50)) {
        stage_.Tell("kubelet: restarts, its checkpoint is lost");
        kubelet_.LoseCheckpoint();
      }
      return;
    case 88:
      if (profile_.reboots && random.Percent(50)) Reboot();
      return;
    case 89:
    case 90:
      if (profile_.odd_processes) StrayProcess();
      return;
    case 91:
      if (profile_.map_breaks && random.Percent(50)) return MapTrouble();
      if (profile_.devices_vanish) DeviceTrouble();
      return;
    case 92:
    case 93:
      if (profile_.operators) Operator();
      return;
    case 94:
    case 95:
      if (profile_.claims) Prepare();
      return;
    case 96:
    case 97:
      return HandOutTwice();
    default:
      if (profile_.crashes) KillAgent("while it does nothing");
      return;
  }
}

}  // namespace switchyard::enforce_sim
