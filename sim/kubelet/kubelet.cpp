// SPDX-License-Identifier: Apache-2.0
#include "sim/kubelet/kubelet.h"

#include <atomic>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/files.h"
#include "base/worker.h"
#include "sim/kubelet/changes.h"
#include "sim/kubelet/device_manager.h"
#include "sim/kubelet/faults.h"
#include "sim/kubelet/plugin_registry.h"
#include "sim/kubelet/pod_resources_server.h"
#include "sim/kubelet/pod_table.h"
#include "sim/kubelet/registration_server.h"

namespace switchyard::sim {
namespace {

PodStatus Rejected(absl::string_view reason, absl::string_view message) {
  return {.admitted = false,
          .reason = std::string(reason),
          .message = std::string(message),
          .containers = {}};
}

}  // namespace

class Kubelet::Impl final : public PodResourcesSource {
 public:
  explicit Impl(KubeletOptions options)
      : options_(std::move(options)),
        clock_(options_.clock != nullptr ? *options_.clock : real_clock_),
        log_(changes_),
        manager_(
            options_.seed, options_.endpoint_grace, [this] { expiry_->Poke(); }, clock_, changes_,
            log_) {}
  ~Impl() override { Stop(); }

  Status Start();
  void Stop();

  PodStatus AddPod(const PodSpec& spec);
  Result<PodStatus> ReadmitPod(const PodTable::Name& name);
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
  PodStatus Admit(const PodRecord& pod);
  PodView View(const PodRecord& pod) const;

  const KubeletOptions options_;
  RealClock real_clock_;
  Clock& clock_;
  Changes changes_;
  CallLog log_;
  Faults faults_;
  DeviceManager manager_;
  PodTable pods_;
  absl::Mutex admission_;                  // one pod at a time
  std::atomic<std::uint64_t> starts_ = 0;  // which start this is; 0: stopped
  std::uint64_t last_start_ = 0;

  // While started, in the order of their start.
  std::unique_ptr<Worker> expiry_;
  std::unique_ptr<PluginRegistry> registry_;
  std::unique_ptr<RegistrationServer> registration_;
  std::unique_ptr<PodResourcesServer> pod_resources_;
};

Status Kubelet::Impl::Start() {
  if (registry_ != nullptr) return absl::FailedPreconditionError("kubelet is started already");
  manager_.Restart();
  faults_.SetStopping(false);
  expiry_ =
      std::make_unique<Worker>("sim-expiry", clock_, [this] { return manager_.RemoveExpired(); });
  registry_ = std::make_unique<PluginRegistry>(
      PluginRegistry::Options{options_.dial_timeout, options_.plugins_by_name_only}, manager_,
      log_);
  starts_ = ++last_start_;
  const Status status = StartServers();
  if (!status.ok()) Stop();
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
  const PodStatus stopped = Rejected("KubeletStopped", "kubelet is not running; add the pod again");
  absl::MutexLock one_at_a_time(&admission_);
  const std::uint64_t start = starts_;
  if (start == 0) return stopped;
  const std::optional<PodRecord> pod = pods_.Begin(spec);
  if (!pod) {
    return Rejected("AlreadyExists", absl::StrCat("there is a pod ", spec.ns, "/", spec.name));
  }
  const PodStatus status = Admit(*pod);
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
  absl::MutexLock one_at_a_time(&admission_);
  const std::optional<PodRecord> pod = pods_.Find(name);
  if (!pod || !pod->active) {
    return absl::NotFoundError(
        absl::StrCat("there is no active pod ", name.first, "/", name.second));
  }
  const PodStatus status = Admit(*pod);
  pods_.Finish(name, status);
  changes_.Bump();
  return status;
}

PodStatus Kubelet::Impl::Admit(const PodRecord& pod) {
  manager_.SetActive(pod.uid, true);
  const auto reject = [&](absl::string_view reason, absl::string_view message) {
    manager_.SetActive(pod.uid, false);
    return Rejected(reason, message);
  };
  for (const ContainerSpec& container : pod.spec.containers) {
    for (const auto& [resource, count] : container.resources) {
      if (count == 0 || manager_.Handles(resource)) continue;
      return reject(absl::StrCat("OutOf", resource),
                    absl::StrCat("Node didn't have enough resource: ", resource,
                                 ", requested: ", count, ", used: 0, capacity: 0"));
    }
  }
  if (const Status status = manager_.Admit(pod.uid, pod.spec); !status.ok()) {
    return reject(
        "UnexpectedAdmissionError",
        absl::StrCat("Allocate failed due to ", status.message(), ", which is unexpected"));
  }
  PodStatus status{.admitted = true};
  for (const ContainerSpec& container : pod.spec.containers) {
    status.containers.push_back(
        MergeAnswers(container.name, manager_.Allocations(pod.uid, container.name)));
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
