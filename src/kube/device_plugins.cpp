// SPDX-License-Identifier: Apache-2.0
#include "kube/device_plugins.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/fd_watcher.h"
#include "base/worker.h"
#include "kube/plugin_server.h"
#include "kube/register_call.h"
#include "kube/registration.h"
#include "kube/socket_files.h"

namespace switchyard::kube {
namespace {
constexpr absl::Duration kNothingToDo = absl::Seconds(10);  // a changed offer pokes
constexpr absl::Duration kListenAgain = absl::Seconds(1);   // e.g. kubelet makes its folder late
}  // namespace

class DevicePlugins::Impl {
 public:
  Impl(DevicePluginsOptions options, DevicePluginsParts parts)
      : options_(std::move(options)),
        parts_(std::move(parts)),
        kubelet_socket_(absl::StrCat(options_.folder, "/", kKubeletSocket)),
        watch_(options_.folder) {}
  ~Impl() { Stop(absl::ZeroDuration()); }

  void Publish(std::shared_ptr<const Offer> offer);
  void Start();
  void Stop(absl::Duration patience);
  absl::Duration Step();
  std::vector<ResourceStatus> Status() const;

 private:
  // One resource's server and how far its registration is. Made and taken down by Step only.
  struct Plugin {
    std::unique_ptr<PluginServer> server;  // null: not listening
    Registration registration;
    bool name_is_used = false;     // in a Register, whatever came of it
    std::int64_t came_before = 0;  // streams before the last Register
    absl::Duration listen_again = -absl::InfiniteDuration();
    std::string listen_problem;
  };

  [[nodiscard]] std::shared_ptr<const Offer> offer() const {
    absl::MutexLock lock(&mutex_);
    return offer_;
  }
  void DropRetired(const Offer& offer);
  Plugin& Find(const std::string& resource);
  absl::Duration Look(const std::string& resource, Plugin& plugin);
  bool Listen(const std::string& resource, Plugin& plugin);
  void Register(const std::string& resource, Plugin& plugin);
  void Report(absl::string_view event, Severity severity, const std::string& resource,
              std::string message);
  void Poke();

  const DevicePluginsOptions options_;
  const DevicePluginsParts parts_;
  const std::string kubelet_socket_;
  SocketWatch watch_;
  RegisterCall register_call_;

  // Of offer_, and of what Status and Publish see in plugins_; Step alone changes plugins_, and
  // reads it without the lock.
  mutable absl::Mutex mutex_;
  std::shared_ptr<const Offer> offer_ ABSL_GUARDED_BY(mutex_) = std::make_shared<const Offer>();
  std::map<std::string, Plugin> plugins_;

  absl::Mutex worker_mutex_;
  std::unique_ptr<Worker> worker_ ABSL_GUARDED_BY(worker_mutex_);
  std::unique_ptr<FdWatcher> watcher_;
};

void DevicePlugins::Impl::Publish(std::shared_ptr<const Offer> offer) {
  {
    absl::MutexLock lock(&mutex_);
    offer_ = std::move(offer);
    for (const Resource& resource : offer_->resources) {
      const auto plugin = plugins_.find(resource.name);
      if (plugin != plugins_.end() && plugin->second.server != nullptr)
        plugin->second.server->Publish({offer_, &resource});
    }
  }
  Poke();
}

void DevicePlugins::Impl::Poke() {
  absl::MutexLock lock(&worker_mutex_);
  if (worker_ != nullptr) worker_->Poke();
}

void DevicePlugins::Impl::Start() {
  (void)RemoveDeadSockets(options_.folder);
  absl::MutexLock lock(&worker_mutex_);
  worker_ = std::make_unique<Worker>("device-plugins", *parts_.clock, [this] { return Step(); });
  if (watch_.fd() < 0) return;
  watcher_ = std::make_unique<FdWatcher>("kubelet-folder", watch_.fd(), [this] {
    if (watch_.Drain()) Poke();
  });
}

void DevicePlugins::Impl::Stop(absl::Duration patience) {
  watcher_.reset();
  register_call_.CancelAll();
  Worker* worker;
  {
    absl::MutexLock lock(&worker_mutex_);
    worker = worker_.get();
  }
  if (worker != nullptr) worker->Stop();  // streams may still poke it, which does nothing
  std::map<std::string, Plugin> ended;
  {
    absl::MutexLock lock(&mutex_);
    ended.swap(plugins_);
  }
  // kubelet drops its calls when their stream ends, so that comes after them.
  const absl::Time until = absl::Now() + patience;
  for (auto& [resource, plugin] : ended) {
    if (plugin.server != nullptr) plugin.server->AwaitCalls(until);
    plugin.server.reset();
  }
}

absl::Duration DevicePlugins::Impl::Step() {
  watch_.Arm();
  const std::shared_ptr<const Offer> now = offer();
  DropRetired(*now);
  absl::Duration wait = kNothingToDo;
  for (const Resource& resource : now->resources) {
    wait = std::min(wait, Look(resource.name, Find(resource.name)));
  }
  return wait;
}

// Servers of resources that are no longer offered.
void DevicePlugins::Impl::DropRetired(const Offer& offer) {
  std::vector<std::map<std::string, Plugin>::node_type> dropped;
  absl::MutexLock lock(&mutex_);
  for (auto plugin = plugins_.begin(); plugin != plugins_.end();) {
    const auto next = std::next(plugin);
    if (offer.Find(plugin->first) == nullptr) dropped.push_back(plugins_.extract(plugin));
    plugin = next;
  }
}

DevicePlugins::Impl::Plugin& DevicePlugins::Impl::Find(const std::string& resource) {
  absl::MutexLock lock(&mutex_);
  const auto [plugin, is_new] = plugins_.try_emplace(
      resource,
      Plugin{nullptr,
             Registration({options_.stream_timeout, options_.first_retry, options_.max_retry}),
             false, 0, -absl::InfiniteDuration(), ""});
  return plugin->second;
}

absl::Duration DevicePlugins::Impl::Look(const std::string& resource, Plugin& plugin) {
  const absl::Duration now = parts_.clock->Monotonic();
  if (plugin.server == nullptr || !plugin.server->SocketIsThere()) {
    if (now < plugin.listen_again) return plugin.listen_again - now;
    if (!Listen(resource, plugin)) return plugin.listen_again - now;
  }
  const PluginServer::Streams streams = plugin.server->streams();
  Registration::Advice advice;
  {
    absl::MutexLock lock(&mutex_);
    advice = plugin.registration.Look(
        {now, StatSocket(kubelet_socket_), streams.came > plugin.came_before, streams.open > 0});
  }
  if (!advice.event.empty())
    Report(advice.event, Severity::kWarning, resource, std::move(advice.message));
  if (!advice.register_now) return advice.wait;
  // kubelet can refuse a name that it has once heard for ever, as "already connected", though it
  // reads nothing from it (1.37).
  if (plugin.name_is_used && !Listen(resource, plugin)) return plugin.listen_again - now;
  Register(resource, plugin);
  return absl::ZeroDuration();  // look at once what came of it
}

// A server on a new socket name: the old name may still be known to kubelet.
bool DevicePlugins::Impl::Listen(const std::string& resource, Plugin& plugin) {
  std::unique_ptr<PluginServer> old;
  {
    absl::MutexLock lock(&mutex_);
    old = std::move(plugin.server);
  }
  old.reset();
  const std::shared_ptr<const Offer> now = offer();
  const Resource* offered = now->Find(resource);
  if (offered == nullptr) return false;
  Result<std::unique_ptr<PluginServer>> server =
      PluginServer::Start(options_.folder, NewSocketName(resource), {now, offered},
                          {parts_.clock, parts_.events, parts_.contract, parts_.tenancies},
                          {[this] { Poke(); },
                           [this] {
                             if (parts_.after_allocate) parts_.after_allocate();
                           }});
  if (!server.ok()) {
    plugin.listen_again = parts_.clock->Monotonic() + kListenAgain;
    const std::string problem(server.status().message());
    if (std::exchange(plugin.listen_problem, problem) != problem)
      Report("listen_failed", Severity::kError, resource, absl::StrCat(problem, "; trying again"));
    return false;
  }
  Report("listening", Severity::kDebug, resource, absl::StrCat("listening on ", (*server)->name()));
  absl::MutexLock lock(&mutex_);
  plugin.listen_problem.clear();
  plugin.server = *std::move(server);
  // An offer that came meanwhile.
  if (const Resource* newest = offer_->Find(resource); newest != nullptr)
    plugin.server->Publish({offer_, newest});
  plugin.name_is_used = false;
  plugin.came_before = 0;
  plugin.registration.Restart();
  return true;
}

void DevicePlugins::Impl::Register(const std::string& resource, Plugin& plugin) {
  plugin.name_is_used = true;
  plugin.came_before = plugin.server->streams().came;
  RegisterCall::Options options;
  if (const Resource* offered = offer()->Find(resource); offered != nullptr)
    options = {offered->preferred_available, offered->pre_start_required};
  const switchyard::Status status = register_call_.Run(kubelet_socket_, options_.register_timeout,
                                                       plugin.server->name(), resource, options);
  const absl::Duration now = parts_.clock->Monotonic();
  {
    absl::MutexLock lock(&mutex_);
    if (status.ok()) {
      plugin.registration.Succeeded(now);
    } else {
      plugin.registration.Failed(now, status);
    }
  }
  if (status.ok()) {
    Report("registered", Severity::kInfo, resource,
           absl::StrCat("registered with kubelet on ", plugin.server->name()));
  } else if (!register_call_.cancelled()) {
    Report("register_failed", Severity::kWarning, resource,
           absl::StrCat(absl::string_view(status.message()), "; trying again"));
  }
}

std::vector<DevicePlugins::ResourceStatus> DevicePlugins::Impl::Status() const {
  absl::MutexLock lock(&mutex_);
  std::vector<ResourceStatus> all;
  for (const Resource& resource : offer_->resources) {
    ResourceStatus& status = all.emplace_back();
    status.resource = resource.name;
    status.devices = static_cast<int>(resource.devices.size());
    status.healthy = static_cast<int>(std::count_if(
        resource.devices.begin(), resource.devices.end(), [](const auto& d) { return d.healthy; }));
    status.problem = "not listening yet";
    const auto plugin = plugins_.find(resource.name);
    if (plugin == plugins_.end()) continue;
    if (plugin->second.server == nullptr) {
      if (!plugin->second.listen_problem.empty()) status.problem = plugin->second.listen_problem;
      continue;
    }
    status.socket = plugin->second.server->name();
    status.streaming = plugin->second.registration.streaming();
    status.problem = plugin->second.registration.problem();
  }
  return all;
}

void DevicePlugins::Impl::Report(absl::string_view event, Severity severity,
                                 const std::string& resource, std::string message) {
  parts_.events->Report({event, severity, std::move(message), {{"resource", resource}}});
}

DevicePlugins::DevicePlugins(DevicePluginsOptions options, DevicePluginsParts parts)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(parts))) {}
DevicePlugins::~DevicePlugins() = default;
void DevicePlugins::Publish(std::shared_ptr<const Offer> offer) {
  impl_->Publish(std::move(offer));
}
void DevicePlugins::Start() { impl_->Start(); }
void DevicePlugins::Stop(absl::Duration patience) { impl_->Stop(patience); }
absl::Duration DevicePlugins::Step() { return impl_->Step(); }
std::vector<DevicePlugins::ResourceStatus> DevicePlugins::Status() const { return impl_->Status(); }

}  // namespace switchyard::kube
