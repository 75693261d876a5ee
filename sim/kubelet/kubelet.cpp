// SPDX-License-Identifier: Apache-2.0
#include "sim/kubelet/kubelet.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/files.h"
#include "base/worker.h"
#include "sim/kubelet/changes.h"
#include "sim/kubelet/checkpoint.h"
#include "sim/kubelet/container_starts.h"
#include "sim/kubelet/device_manager.h"
#include "sim/kubelet/faults.h"
#include "sim/kubelet/plugin_registry.h"
#include "sim/kubelet/pod_resources_server.h"
#include "sim/kubelet/pod_table.h"
#include "sim/kubelet/registration_server.h"
#include "sim/kubelet/shortage.h"

namespace switchyard::sim {
namespace {

PodStatus Rejected(absl::string_view reason, absl::string_view message) {
  return {.admitted = false,
          .reason = std::string(reason),
          .message = std::string(message),
          .containers = {}};
}

Status NoActivePod(const PodTable::Name& name) {
  return absl::NotFoundError(absl::StrCat("there is no active pod ", name.first, "/", name.second));
}

}  // namespace

class Kubelet::Impl final : public PodResourcesSource {
 public:
  explicit Impl(KubeletOptions options)
      : options_(std::move(options)),
        clock_(options_.clock != nullptr ? *options_.clock : real_clock_),
        log_(changes_),
        manager_(
            {.seed = options_.seed,
             .grace = options_.endpoint_grace,
             .topology = options_.topology,
             .checkpoint = absl::StrCat(options_.device_plugins_folder, "/", kCheckpointFile)},
            [this] { expiry_->Poke(); }, clock_, changes_, log_),
        container_starts_(manager_, pods_, admission_, changes_) {}
  ~Impl() override { Stop(); }

  Status Start();
  void Stop();
  void EndContainers() { pods_.Reboot(); }

  PodStatus AddPod(const PodSpec& spec);
  Result<PodStatus> ReadmitPod(const PodTable::Name& name);
  Result<PodStatus> RestartContainers(const PodTable::Name& name);
  void RetryStarts() { container_starts_.StartAll(); }
  Status LoseCheckpoint();
  bool RemovePod(const PodTable::Name& name);
  std::vector<PodReport> Pods() const;

  std::vector<PodView> ListPods() override;
  std::optional<PodView> GetPod(const std::string& ns, const std::string& name) override;
  std::vector<PodDevice> HealthyDevices() override;

  Changes& changes() { return changes_; }
  Faults& faults() { return faults_; }
  const CallLog& log() const { return log_; }
  DeviceManager& manager() { return manager_; }

 private:
  Status StartServers();
  PodStatus AdmitNew(const PodSpec& spec);
  Result<PodStatus> AdmitAgain(const PodTable::Name& name);
  PodStatus Admit(const PodRecord& pod, bool again);
  PodView View(const PodRecord& pod) const;

  const KubeletOptions options_;
  RealClock real_clock_;
  Clock& clock_;
  Changes changes_;
  CallLog log_;
  Faults faults_;
  DeviceManager manager_;
  PodTable pods_;
  absl::Mutex admission_;  // one pod at a time
  ContainerStarts container_starts_;
  std::atomic<std::uint64_t> starts_ = 0;  // which start this is; 0: stopped
  std::uint64_t last_start_ = 0;

  // While started, in the order of their start.
  std::unique_ptr<Worker> expiry_;
  std::unique_ptr<PluginRegistry> registry_;
  std::unique_ptr<RegistrationServer> registration_;
  std::unique_ptr<PodResourcesServer> pod_resources_;
  std::unique_ptr<Worker> retries_;
};

Status Kubelet::Impl::Start() {
  if (registry_ != nullptr) return absl::FailedPreconditionError("kubelet is started already");
  RETURN_IF_ERROR(Annotate(manager_.Restart(), "starting the simulated kubelet"));
  pods_.SkipUids(manager_.LastPod());
  faults_.SetStopping(false);
  expiry_ =
      std::make_unique<Worker>("sim-expiry", clock_, [this] { return manager_.RemoveExpired(); });
  registry_ = std::make_unique<PluginRegistry>(
      PluginRegistry::Options{options_.dial_timeout, options_.pre_start_timeout,
                              options_.plugins_by_name_only},
      manager_, log_);
  starts_ = ++last_start_;
  const Status status = StartServers();
  if (status.ok()) {
    retries_ = std::make_unique<Worker>("sim-starts", clock_, [this, first = true]() mutable {
      if (!std::exchange(first, false)) RetryStarts();
      return options_.start_retry;
    });
  } else {
    Stop();
  }
  changes_.Bump();
  return Annotate(status, "starting the simulated kubelet");
}

Status Kubelet::Impl::StartServers() {
  const std::string& plugins = options_.device_plugins_folder;
  RETURN_IF_ERROR(MakeFolders(plugins, 0750));
  RETURN_IF_ERROR(DeleteSockets(plugins));
  registration_ = std::make_unique<RegistrationServer>(plugins, *registry_, faults_, log_);
  RETURN_IF_ERROR(registration_->Start());

  if (options_.pod_resources_folder.empty()) return OkStatus();
  RETURN_IF_ERROR(MakeFolders(options_.pod_resources_folder, 0750));
  pod_resources_ = std::make_unique<PodResourcesServer>(
      PodResourcesServer::Options{options_.pod_resources_folder, options_.limit_pod_resources},
      *this, clock_, log_);
  return pod_resources_->Start();
}

void Kubelet::Impl::Stop() {
  if (registry_ == nullptr) return;
  starts_ = 0;
  faults_.SetStopping(true);
  registry_->Close();  // before the servers: Register may be waiting for a plugin
  retries_.reset();
  pod_resources_.reset();
  registration_.reset();
  registry_.reset();
  expiry_.reset();
  changes_.Bump();
}

PodStatus Kubelet::Impl::AddPod(const PodSpec& spec) {
  if (const std::optional<std::string> problem = FindProblem(spec)) {
    return Rejected("Invalid", *problem);
  }
  PodStatus status = AdmitNew(spec);
  if (!status.admitted) return status;
  container_starts_.Start({spec.ns, spec.name});
  const std::optional<PodRecord> pod = pods_.Find({spec.ns, spec.name});
  return pod ? pod->status : status;  // none: removed meanwhile
}

PodStatus Kubelet::Impl::AdmitNew(const PodSpec& spec) {
  const PodStatus stopped = Rejected("KubeletStopped", "kubelet is not running; add the pod again");
  absl::MutexLock one_at_a_time(&admission_);
  const std::uint64_t start = starts_;
  if (start == 0) return stopped;
  const std::optional<PodRecord> pod = pods_.Begin(spec);
  if (!pod) {
    return Rejected("AlreadyExists", absl::StrCat("there is a pod ", spec.ns, "/", spec.name));
  }
  PodStatus status = Admit(*pod, /*again=*/false);
  if (!status.admitted && start != starts_) {
    pods_.Forget({spec.ns, spec.name});
    changes_.Bump();
    return stopped;
  }
  pods_.Finish({spec.ns, spec.name}, status);
  changes_.Bump();
  return status;
}

Result<PodStatus> Kubelet::Impl::ReadmitPod(const PodTable::Name& name) {
  ASSIGN_OR_RETURN(PodStatus status, AdmitAgain(name));
  if (!status.admitted) return status;
  container_starts_.Start(name);
  const std::optional<PodRecord> pod = pods_.Find(name);
  return pod ? pod->status : status;
}

Result<PodStatus> Kubelet::Impl::AdmitAgain(const PodTable::Name& name) {
  absl::MutexLock one_at_a_time(&admission_);
  if (starts_ == 0) return absl::UnavailableError("kubelet is not running");
  const std::optional<PodRecord> pod = pods_.Find(name);
  if (!pod || !pod->active) return NoActivePod(name);
  const PodStatus status = Admit(*pod, /*again=*/true);
  pods_.Finish(name, status);
  changes_.Bump();
  return status;
}

Result<PodStatus> Kubelet::Impl::RestartContainers(const PodTable::Name& name) {
  if (starts_ == 0) return absl::UnavailableError("kubelet is not running");
  const std::optional<PodRecord> pod = pods_.Find(name);
  if (!pod || !pod->active) return NoActivePod(name);
  std::vector<ContainerResult> containers = pod->status.containers;
  for (ContainerResult& container : containers) {
    if (container.state == ContainerState::kRunning) container.state = ContainerState::kWaiting;
  }
  pods_.SetContainers(name, pod->uid, std::move(containers));
  container_starts_.Start(name);
  const std::optional<PodRecord> now = pods_.Find(name);
  if (!now) return NoActivePod(name);
  return now->status;
}

Status Kubelet::Impl::LoseCheckpoint() {
  const std::string path = absl::StrCat(options_.device_plugins_folder, "/", kCheckpointFile);
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return OkStatus();
  return ErrnoError(errno, absl::StrCat("deleting ", path));
}

PodStatus Kubelet::Impl::Admit(const PodRecord& pod, bool again) {
  manager_.SetActive(pod.uid, true);
  const auto reject = [&](absl::string_view reason, absl::string_view message) {
    manager_.SetActive(pod.uid, false);
    return Rejected(reason, message);
  };
  for (const ContainerSpec& container : pod.spec.containers) {
    for (const auto& [resource, count] : container.resources) {
      // Of a pod that a scheduler placed here long ago kubelet itself overlooks resources that
      // nobody has registered (removeMissingExtendedResources in its lifecycle/predicate.go).
      if (again || count == 0 || manager_.Handles(resource)) continue;
      return reject(absl::StrCat("OutOf", resource),
                    absl::StrCat("Node didn't have enough resource: ", resource,
                                 ", requested: ", count, ", used: 0, capacity: 0"));
    }
  }
  // As kubelet while it starts (isContainerAlreadyRunning in its devicemanager/manager.go).
  std::map<std::string, ContainerResult> running;
  std::set<std::string> names;
  for (const ContainerResult& container : pod.status.containers) {
    if (container.state != ContainerState::kRunning) continue;
    running[container.name] = container;
    names.insert(container.name);
  }
  if (const Status status = manager_.Admit(pod.uid, pod.spec, names); !status.ok()) {
    if (IsTopologyError(status)) return reject("TopologyAffinityError", status.message());
    return reject(
        "UnexpectedAdmissionError",
        absl::StrCat("Allocate failed due to ", status.message(), ", which is unexpected"));
  }
  if (!again) {
    std::vector<PodSpec> others;
    for (const PodRecord& other : pods_.All()) {
      if (other.active && other.uid != pod.uid) others.push_back(other.spec);
    }
    if (const auto shortage = FindShortage(pod.spec, others, manager_.Report())) {
      return reject(absl::StrCat("OutOf", shortage->resource), shortage->message);
    }
  }
  PodStatus status{.admitted = true};
  for (const ContainerSpec& container : pod.spec.containers) {
    const auto found = running.find(container.name);
    status.containers.push_back(
        found != running.end()
            ? found->second
            : MergeAnswers(container.name, manager_.Allocations(pod.uid, container.name)));
  }
  return status;
}

bool Kubelet::Impl::RemovePod(const PodTable::Name& name) {
  const std::optional<PodRecord> pod = pods_.Remove(name);
  if (!pod) return false;
  manager_.SetActive(pod->uid, false);
  changes_.Bump();
  return true;
}

std::vector<PodReport> Kubelet::Impl::Pods() const {
  std::vector<PodReport> reports;
  for (PodRecord& pod : pods_.All()) {
    reports.push_back({pod.spec.ns, pod.spec.name, std::move(pod.status)});
  }
  return reports;
}

std::vector<PodView> Kubelet::Impl::ListPods() {
  manager_.Reclaim();
  std::vector<PodView> views;
  for (const PodRecord& pod : pods_.All()) {
    if (pod.active) views.push_back(View(pod));
  }
  return views;
}

std::optional<PodView> Kubelet::Impl::GetPod(const std::string& ns, const std::string& name) {
  const std::optional<PodRecord> pod = pods_.Find({ns, name});
  return pod ? std::optional<PodView>(View(*pod)) : std::nullopt;
}

PodView Kubelet::Impl::View(const PodRecord& pod) const {
  PodView view{.ns = pod.spec.ns, .name = pod.spec.name, .containers = {}};
  for (const bool init : {true, false}) {
    for (const ContainerSpec& container : pod.spec.containers) {
      if (container.init != init || (init && !container.restartable)) continue;
      auto& [name, devices] =
          view.containers.emplace_back(container.name, std::vector<PodDevice>{});
      for (const Allocation& allocation : manager_.Allocations(pod.uid, container.name)) {
        for (const AllocatedDevice& device : allocation.devices) {
          devices.push_back({allocation.resource, device.id, device.numa_nodes});
        }
      }
    }
  }
  return view;
}

std::vector<PodDevice> Kubelet::Impl::HealthyDevices() {
  std::vector<PodDevice> devices;
  for (const auto& [resource, report] : manager_.Report()) {
    for (const DeviceReport& device : report.devices) {
      if (device.healthy) devices.push_back({resource, device.id, device.numa_nodes});
    }
  }
  return devices;
}

Kubelet::Kubelet(KubeletOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Kubelet::~Kubelet() = default;

Status Kubelet::Start() { return impl_->Start(); }
void Kubelet::Stop() { impl_->Stop(); }
Status Kubelet::Restart() {
  impl_->Stop();
  return impl_->Start();
}

PodStatus Kubelet::AddPod(const PodSpec& spec) { return impl_->AddPod(spec); }
Result<PodStatus> Kubelet::ReadmitPod(absl::string_view ns, absl::string_view name) {
  return impl_->ReadmitPod({std::string(ns), std::string(name)});
}
Status Kubelet::Reboot() {
  impl_->Stop();
  impl_->EndContainers();
  return impl_->Start();
}
Result<PodStatus> Kubelet::RestartContainers(absl::string_view ns, absl::string_view name) {
  return impl_->RestartContainers({std::string(ns), std::string(name)});
}
void Kubelet::RetryStarts() { impl_->RetryStarts(); }
Status Kubelet::LoseCheckpoint() { return impl_->LoseCheckpoint(); }
bool Kubelet::RemovePod(absl::string_view ns, absl::string_view name) {
  return impl_->RemovePod({std::string(ns), std::string(name)});
}

std::vector<PodReport> Kubelet::Pods() const { return impl_->Pods(); }
std::map<std::string, ResourceReport> Kubelet::Resources() const {
  return impl_->manager().Report();
}
const CallLog& Kubelet::calls() const { return impl_->log(); }

bool Kubelet::WaitFor(const std::function<bool()>& done, absl::Duration timeout) const {
  return impl_->changes().WaitFor(done, timeout);
}

void Kubelet::FailRegisters(int next) { impl_->faults().FailRegisters(next); }
void Kubelet::WithholdStreams(int next) { impl_->faults().WithholdStreams(next); }
void Kubelet::HoldDialBack(bool hold) { impl_->faults().HoldDialBack(hold); }

}  // namespace switchyard::sim
