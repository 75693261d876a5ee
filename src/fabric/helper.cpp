// SPDX-License-Identifier: Apache-2.0
#include "fabric/helper.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/unique_fd.h"
#include "fabric/helper_channel.h"
#include "fabric/helper_list.h"
#include "fabric/helper_protocol.h"

namespace switchyard::fabric {

// A running helper and our end of its socket.
class FabricHelper::Channel {
 public:
  static Result<std::unique_ptr<Channel>> Start(const std::vector<std::string>& command) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
      return ErrnoError(errno, "socketpair");
    }
    UniqueFd ours(ends[0]);
    UniqueFd theirs(ends[1]);
    ASSIGN_OR_RETURN(ChildProcess process, ChildProcess::Start({command, theirs.get()}));
    return std::unique_ptr<Channel>(new Channel(std::move(ours), std::move(process)));
  }

  Result<std::string> Exchange(absl::string_view request, absl::Duration deadline) {
    RETURN_IF_ERROR(SendMessage(fd_.get(), request, deadline));
    return ReceiveMessage(fd_.get(), deadline);
  }

  [[nodiscard]] bool IsDead() const { return IsHungUp(fd_.get()); }

  // Wakes Exchange in another thread, which then finds the channel closed.
  void Interrupt() {
    interrupted_ = true;
    (void)::shutdown(fd_.get(), SHUT_RDWR);
  }
  [[nodiscard]] bool interrupted() const { return interrupted_; }

  // Ends the process; returns how it ended.
  std::string Kill() { return process_.Kill(); }

 private:
  Channel(UniqueFd fd, ChildProcess process) : fd_(std::move(fd)), process_(std::move(process)) {}

  UniqueFd fd_;
  ChildProcess process_;
  bool interrupted_ = false;  // guarded by the owner's mutex_
};

namespace {

constexpr char kClosed[] = "the fabric helper is closed: the agent is stopping";

// libnvfm's own limit for connecting, below ours: an address that swallows packets is then an
// answer of libnvfm, and the helper stays.
absl::Duration ConnectTimeout(absl::Duration whole) { return whole / 2; }

// What was left of a request is another each time, and the same text again is one Kubernetes event:
// `within` is rounded unless it is the limit itself.
Status TimedOut(absl::string_view asked, absl::Duration within, absl::Duration limit) {
  const absl::Duration unit = within < absl::Seconds(1) ? absl::Milliseconds(10) : absl::Seconds(1);
  if (within != limit) within = std::max(absl::Trunc(within, unit), absl::Milliseconds(1));
  return absl::DeadlineExceededError(absl::StrCat(
      "asking ", asked, " gave no answer within ", absl::FormatDuration(within),
      "; the helper process was ended and starts anew with the next call. Check that the service "
      "and the driver respond (its log, nvidia-smi); fabric.timeout is the limit"));
}

Status Crashed(absl::string_view asked, absl::string_view ending) {
  return absl::AbortedError(absl::StrCat(
      "asking ", asked, ": the vendor library ended the helper process (", ending,
      "); it starts anew with the next call. Check that library, driver and service are of one "
      "version"));
}

}  // namespace

FabricHelper::FabricHelper(HelperOptions options) : options_(std::move(options)) {}

FabricHelper::~FabricHelper() = default;

Result<FabricList> FabricHelper::ReadPartitions() {
  ASSIGN_OR_RETURN(const std::string text,
                   Call(RequestToFabricManager(options_.timeout), options_.timeout,
                        absl::StrCat("Fabric Manager at ", options_.address.ToString())));
  return DecodeList(text);
}

Result<FabricList> FabricHelper::Activate(int partition, absl::Duration within) {
  return Change({FabricChange::Kind::kActivate, {partition}}, within);
}

Result<FabricList> FabricHelper::Deactivate(int partition, absl::Duration within) {
  return Change({FabricChange::Kind::kDeactivate, {partition}}, within);
}

Result<FabricList> FabricHelper::SetActivated(std::span<const int> partitions) {
  return Change({FabricChange::Kind::kSetActivated, {partitions.begin(), partitions.end()}},
                options_.timeout);
}

Result<FabricList> FabricHelper::Change(FabricChange change, absl::Duration within) {
  RETURN_IF_ERROR(change.Validate());
  within = std::min(within, options_.timeout);
  HelperRequest request = RequestToFabricManager(within);
  request.call = HelperRequest::Call::kChange;
  request.change = std::move(change);
  ASSIGN_OR_RETURN(const std::string text,
                   Call(request, within,
                        absl::StrCat("Fabric Manager at ", options_.address.ToString(), " to ",
                                     request.change.ToString())));
  return DecodeList(text);
}

HelperRequest FabricHelper::RequestToFabricManager(absl::Duration within) const {
  HelperRequest request;
  request.library = options_.fabric_library;
  request.address = options_.address;
  request.connect_timeout = ConnectTimeout(within);
  return request;
}

Result<ModuleEntries> FabricHelper::ReadModuleIds() {
  HelperRequest request;
  request.call = HelperRequest::Call::kReadModuleIds;
  request.library = options_.nvml_library;
  ASSIGN_OR_RETURN(const std::string text, Call(request, options_.timeout, "NVML"));
  return DecodeModules(text);
}

void FabricHelper::CloseWithin(absl::Duration time) {
  const absl::MutexLock lock(&mutex_);
  closes_ = RealClock().Monotonic() + time;
}

void FabricHelper::Close() {
  absl::MutexLock lock(&mutex_);
  closed_ = true;
  if (in_flight_ != InFlight::kNothing) channel_->Interrupt();
}

Result<std::string> FabricHelper::Call(const HelperRequest& request, absl::Duration within,
                                       absl::string_view asked) {
  const absl::Duration began = RealClock().Monotonic();
  absl::Duration deadline = began + within;
  {
    const absl::MutexLock lock(&mutex_);
    if (closes_ <= began) return absl::CancelledError(kClosed);
    deadline = std::min(deadline, closes_);
  }
  within = deadline - began;
  const bool change = request.call == HelperRequest::Call::kChange;
  ASSIGN_OR_RETURN(Channel* const channel,
                   BeginCall(change ? InFlight::kChange : InFlight::kRead, deadline));
  const Result<std::string> reply = channel->Exchange(EncodeRequest(request), deadline);
  const std::unique_ptr<Channel> broken = EndCall(reply.ok());
  if (broken == nullptr) return DecodeReply(*reply);

  const std::string ending = broken->Kill();
  switch (reply.status().code()) {
    case absl::StatusCode::kDeadlineExceeded:
      return TimedOut(asked, within, options_.timeout);
    case absl::StatusCode::kUnavailable:  // the channel closed before the reply
      if (!broken->interrupted()) return Crashed(asked, ending);
      return absl::CancelledError(absl::StrCat("asking ", asked, " was interrupted"));
    default:
      return absl::InternalError(absl::StrCat("asking ", asked, ": ", reply.status().message()));
  }
}

Result<FabricHelper::Channel*> FabricHelper::BeginCall(InFlight what, absl::Duration deadline) {
  const bool change = what == InFlight::kChange;
  absl::MutexLock lock(&mutex_);
  if (change) {
    ++changes_waiting_;
    if (in_flight_ == InFlight::kRead) channel_->Interrupt();
  }
  const auto my_turn = [&] {
    mutex_.AssertReaderHeld();
    return closed_ || (in_flight_ == InFlight::kNothing && (change || changes_waiting_ == 0));
  };
  const bool mine =
      mutex_.AwaitWithTimeout(absl::Condition(&my_turn), deadline - RealClock().Monotonic());
  if (change) --changes_waiting_;
  if (closed_) return absl::CancelledError(kClosed);
  if (!mine && !change) return absl::CancelledError("a change of the fabric went first");
  if (!mine) {
    return absl::DeadlineExceededError(
        "another change of the fabric took all the time: Fabric Manager was not asked");
  }
  // A helper that somebody else killed since the last call is nobody's crash.
  if (channel_ != nullptr && channel_->IsDead()) channel_.reset();
  if (channel_ == nullptr) {
    Result<std::unique_ptr<Channel>> started = Channel::Start(options_.command);
    if (!started.ok()) {
      return absl::InternalError(
          absl::StrCat("starting the fabric helper: ", started.status().message()));
    }
    channel_ = *std::move(started);
  }
  in_flight_ = what;
  return channel_.get();
}

std::unique_ptr<FabricHelper::Channel> FabricHelper::EndCall(bool keep) {
  absl::MutexLock lock(&mutex_);
  in_flight_ = InFlight::kNothing;
  return keep ? nullptr : std::move(channel_);
}

}  // namespace switchyard::fabric
