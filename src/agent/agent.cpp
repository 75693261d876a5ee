// SPDX-License-Identifier: Apache-2.0
#include "agent/agent.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "agent/background.h"
#include "agent/endpoint_probe.h"
#include "agent/fabric_hints.h"
#include "agent/http_routes.h"
#include "agent/http_server.h"
#include "agent/make_tenancies.h"
#include "agent/metrics.h"
#include "agent/ownership.h"
#include "agent/process_name.h"
#include "agent/stop_signal.h"
#include "agent/timed_fabric.h"
#include "agent/user_events.h"
#include "base/clock.h"
#include "base/file_lock.h"
#include "base/files.h"
#include "base/log.h"
#include "base/log_thread.h"
#include "fabric/helper.h"
#include "kube/catalogue.h"
#include "kube/contract.h"
#include "kube/device_plugins.h"
#include "kube/pod_resources.h"
#include "pci/pci_ids.h"
#include "store/store.h"
#include "tenancy/tenancies.h"

namespace switchyard::agent {
namespace {

// kubelet wants its devices within a second of a node's start (kubernetes#125579).
constexpr absl::Duration kFirstReadPatience = absl::Milliseconds(500);

// kubelet's own default, which it writes in lower case.
std::string NodeName(const Config& config) {
  if (!config.node_name.empty()) return config.node_name;
  utsname host{};
  return ::uname(&host) == 0 ? host.nodename : "";
}

std::string Parent(const std::string& path) { return path.substr(0, path.rfind('/')); }

Result<std::unique_ptr<kube::Contract>> MakeContract(const Config& config) {
  kube::NamingOptions naming;
  naming.names = config.resources.names;
  naming.gpu_alias = config.resources.gpu_alias;
  naming.nvswitch_alias = config.resources.nvswitch_alias;
  pci::PciIds ids(config.paths.pci_ids);
  if (config.consumer == Consumer::kKubevirt) {
    return kube::MakeKubevirtContract(std::move(naming), std::move(ids), config.fabric.mode);
  }
  return kube::MakeKataContract(std::move(naming), std::move(ids), config.fabric.mode);
}

}  // namespace

class Agent::Impl {
 public:
  Impl(const LoadedConfig& loaded, StartOptions options)
      : config_(loaded.config), notes_(loaded.notes), options_(std::move(options)) {}

  ~Impl() {
    while (started_ > 0) (this->*kSteps[--started_].stop)();
  }

  Status Start() {
    for (const Step& step : kSteps) {
      RETURN_IF_ERROR(Annotate((this->*step.start)(), step.name));
      ++started_;
    }
    Log(Severity::kInfo, "the agent is running",
        {{"consumer", std::string(contract_->Name())},
         {"fabric_mode", std::string(tenancy::FabricModeName(config_.fabric.mode))},
         {"http", http_address_},
         {"socket", config_.paths.socket}});
    return OkStatus();
  }

 private:
  struct Step {
    const char* name;
    Status (Impl::*start)();
    void (Impl::*stop)();
  };
  static const std::array<Step, 7> kSteps;

  Status TakeOwnership() {
    RETURN_IF_ERROR(MakeFolders(config_.paths.state, 0700));
    Result<FileLock> lock = FileLock::TryAcquire(OwnerLockPath(config_));
    if (absl::IsUnavailable(lock.status()) && options_.wait_lock > absl::ZeroDuration()) {
      const ProcessName name(kWaitingName);
      ASSIGN_OR_RETURN(const std::unique_ptr<StopSignal> stop, StopSignal::Make());
      lock =
          WaitForOwnership(OwnerLockPath(config_), options_.wait_lock,
                           {&clock_, &metrics_, &stop->wakeup(), [&stop] { return stop->came(); }});
    }
    RETURN_IF_ERROR(lock.status());
    lock_ = *std::move(lock);
    for (const std::string& note : notes_) Log(Severity::kWarning, note);
    return OkStatus();
  }
  void GiveUpOwnership() { lock_.reset(); }

  // What was remembered. Without it the agent still serves what the kernel says; in enforce it
  // grants nothing then, since nobody could be kept apart.
  Status OpenState() {
    Result<store::Store::Opened> opened =
        store::Store::Open(config_.paths.state, store::Store::Mode::kReadWrite);
    if (absl::IsFailedPrecondition(opened.status())) return opened.status();  // a newer schema
    if (!opened.ok()) {
      events().Report(
          {"state_unusable",
           Severity::kError,
           absl::StrCat("running without remembered state: ", opened.status().message()),
           {}});
      return OkStatus();
    }
    store_ = std::move(opened->store);
    if (opened->set_aside) {
      events().Report({"state_set_aside",
                       Severity::kError,
                       absl::StrCat("the state file was no database of ours; kept as ",
                                    *opened->set_aside, ", and a new one begun"),
                       {}});
    }
    return OkStatus();
  }
  void CloseState() { store_.reset(); }

  // Events for the cluster's users, where there is a cluster. Whatever goes wrong with that is none
  // of the node's business: the agent runs the same without.
  Status FindCluster() {
    user_events_ = MakeUserEvents(config_, metrics_, clock_);
    return OkStatus();
  }
  void LeaveCluster() { user_events_.reset(); }
  EventSink& events() {
    return user_events_ == nullptr ? static_cast<EventSink&>(metrics_) : user_events_->sink();
  }

  Status MakeParts() {
    if (config_.fabric.mode != tenancy::FabricMode::kOff) {
      helper_ = std::make_unique<fabric::FabricHelper>(fabric::HelperOptions{
          options_.helper_command, config_.fabric.address, config_.fabric.library,
          config_.paths.nvml, config_.fabric.timeout});
      timed_fabric_ = std::make_unique<TimedFabric>(*helper_, clock_, metrics_);
    }
    tenancies_ = MakeTenancies(config_, {&clock_, &events(), store_.get(), timed_fabric_.get()});
    // Written by a newer version: touch nothing.
    if (const Status journal = tenancies_->JournalStatus();
        store_ != nullptr && absl::IsFailedPrecondition(journal)) {
      return journal;
    }
    ASSIGN_OR_RETURN(contract_, MakeContract(config_));
    catalogue_ = std::make_unique<kube::Catalogue>(*contract_, store_.get(), events());
    kube::DevicePluginsOptions options;
    options.folder = config_.paths.device_plugins;
    plugins_ = std::make_unique<kube::DevicePlugins>(
        options, kube::DevicePluginsParts{&clock_, &events(), contract_.get(), tenancies_.get(),
                                          [this] { background_->AllocateReturned(); }});
    pod_resources_ = std::make_unique<kube::PodResourcesClient>(
        kube::PodResourcesClient::Options{
            absl::StrCat(config_.paths.kubelet_root, "/pod-resources/kubelet.sock"),
            absl::Seconds(2), NodeName(config_)},
        *catalogue_, clock_);
    tenancies_->SetAssignmentSource(pod_resources_.get());
    background_ = std::make_unique<Background>(
        config_,
        Background::Parts{&clock_, &events(), tenancies_.get(), catalogue_.get(), plugins_.get(),
                          pod_resources_.get(), helper_.get()},
        contract_->WritesCdi());
    return OkStatus();
  }
  void DropParts() {
    background_.reset();
    pod_resources_.reset();
    plugins_.reset();
    catalogue_.reset();
    tenancies_.reset();
    timed_fabric_.reset();
    helper_.reset();
  }

  Status Register() {
    // In enforce nothing is Healthy before Fabric Manager was read: that comes first.
    const bool enforces = config_.fabric.mode == tenancy::FabricMode::kEnforce;
    if (enforces) {
      background_->LookOnce();
    } else {
      background_->ScanOnce();
    }
    if (helper_ != nullptr && (enforces || !tenancies_->View().known)) {
      background_->ReadFabricFirst(kFirstReadPatience);
    }
    if (enforces) background_->ScanOnce();
    plugins_->Start();
    if (config_.fabric.mode == tenancy::FabricMode::kOff) WarnIfThereIsAFabric();
    return OkStatus();
  }
  void WarnIfThereIsAFabric() {
    const std::shared_ptr<const pci::Inventory> inventory = background_->inventory();
    if (inventory == nullptr) return;
    std::vector<std::string> hints = FabricHints(HostRoot(config_.paths.host_root), *inventory);
    if (Listens(config_.fabric.address)) {
      hints.push_back(
          absl::StrCat("Fabric Manager listens at ", config_.fabric.address.ToString()));
    }
    if (hints.empty()) return;
    events().Report({"fabric_off",
                     Severity::kWarning,
                     "fabric.mode is off, but this node has an NVLink fabric: GPUs are handed out "
                     "without regard to partitions; set fabric.mode to advise",
                     {{"signs", absl::StrJoin(hints, "; ")}}});
  }
  void Unregister() { plugins_->Stop(); }

  Status StartBackground() {
    background_->Start();
    return OkStatus();
  }
  // First kubelet's calls in flight are answered: a pod that is refused is refused for good. What
  // they ask of Fabric Manager is over within the time of one call.
  void StopBackground() {
    if (helper_ != nullptr) helper_->CloseWithin(config_.fabric.timeout);
    plugins_->Stop(std::max(config_.allocate_wait, config_.fabric.timeout));
    background_->Stop();
  }

  Status ServeHttp() {
    http_ = std::make_unique<HttpServer>();
    const Routes routes(config_, metrics_, *tenancies_, *catalogue_, *plugins_, *background_,
                        user_events_.get());
    ASSIGN_OR_RETURN(http_address_,
                     http_->ListenTcp(config_.http_address.ToString(), routes.Public()));
    if (!config_.http_address.IsLoopback()) {
      Log(Severity::kWarning, "metrics and probes are served beyond this machine",
          {{"http", http_address_}});
    }
    RETURN_IF_ERROR(MakeFolders(Parent(config_.paths.socket), 0700));
    RETURN_IF_ERROR(http_->ListenUnix(config_.paths.socket, routes.Operator(), routes.Changes()));
    http_->Start();
    return OkStatus();
  }
  void StopHttp() { http_.reset(); }

  const Config config_;
  const std::vector<std::string> notes_;
  const StartOptions options_;
  std::size_t started_ = 0;

  RealClock clock_;
  Metrics metrics_;
  std::optional<FileLock> lock_;
  std::unique_ptr<UserEvents> user_events_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<fabric::FabricHelper> helper_;
  std::unique_ptr<TimedFabric> timed_fabric_;
  std::unique_ptr<tenancy::Tenancies> tenancies_;
  std::unique_ptr<kube::Contract> contract_;
  std::unique_ptr<kube::Catalogue> catalogue_;
  std::unique_ptr<kube::DevicePlugins> plugins_;
  std::unique_ptr<kube::PodResourcesClient> pod_resources_;
  std::unique_ptr<Background> background_;
  std::unique_ptr<HttpServer> http_;
  std::string http_address_;
};

// The whole life of the agent: started from top to bottom, stopped from bottom to top. What can
// fail for a reason of its own comes before kubelet hears of us: no devices that come and go.
const std::array<Agent::Impl::Step, 7> Agent::Impl::kSteps = {{
    {"taking the node's owner lock", &Impl::TakeOwnership, &Impl::GiveUpOwnership},
    {"looking for the cluster", &Impl::FindCluster, &Impl::LeaveCluster},
    {"opening the state", &Impl::OpenState, &Impl::CloseState},
    {"making the parts", &Impl::MakeParts, &Impl::DropParts},
    {"serving HTTP", &Impl::ServeHttp, &Impl::StopHttp},
    {"offering the devices to kubelet", &Impl::Register, &Impl::Unregister},
    {"starting the background work", &Impl::StartBackground, &Impl::StopBackground},
}};

Agent::Agent(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Agent::~Agent() = default;

Result<std::unique_ptr<Agent>> Agent::Start(const LoadedConfig& config,
                                            const StartOptions& options) {
  auto impl = std::make_unique<Impl>(config, options);
  RETURN_IF_ERROR(impl->Start());
  return std::unique_ptr<Agent>(new Agent(std::move(impl)));
}

int RunAgent(const LoadedConfig& config, const StartOptions& options) {
  InitLogging(config.config.log.format, config.config.log.level);
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGTERM);
  ::sigaddset(&signals, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  ::umask(0077);  // sockets and state are root's alone
  const LogThread log_thread;

  Result<std::unique_ptr<Agent>> agent = Agent::Start(config, options);
  if (absl::IsCancelled(agent.status())) {
    Log(Severity::kInfo, "stopped while waiting for the owner lock; nothing had been started");
    return 0;
  }
  if (!agent.ok()) {
    Log(Severity::kError, absl::StrCat("the agent did not start: ", agent.status().message()));
    return 1;
  }
  int signal = 0;
  ::sigwait(&signals, &signal);
  Log(Severity::kInfo, "stopping", {{"signal", std::to_string(signal)}});
  agent->reset();
  Log(Severity::kInfo, "stopped; what containers hold was left alone");
  return 0;
}

}  // namespace switchyard::agent
