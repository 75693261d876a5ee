// SPDX-License-Identifier: Apache-2.0
// The helper process's own main.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <memory>
#include <system_error>
#include <thread>

#include "fabric/fm_client.h"
#include "fabric/helper.h"
#include "fabric/helper_channel.h"
#include "fabric/helper_list.h"
#include "fabric/helper_protocol.h"
#include "fabric/module_ids.h"
#include "fabric/nvfm_library.h"

namespace switchyard::fabric {
namespace {

class HelperServer {
 public:
  Result<std::string> Serve(absl::string_view text) {
    ASSIGN_OR_RETURN(const HelperRequest request, DecodeRequest(text));
    if (request.call == HelperRequest::Call::kReadModuleIds) {
      ASSIGN_OR_RETURN(const ModuleEntries entries, ReadModuleIdsFromLibrary(request.library));
      return EncodeModules(entries);
    }
    RETURN_IF_ERROR(LoadClient(request.library));
    const Result<FabricList> list =
        request.call == HelperRequest::Call::kChange
            ? client_->Change(request.address, request.connect_timeout, request.change)
            : client_->ReadPartitions(request.address, request.connect_timeout);
    if (!list.ok()) return list.status();
    return EncodeList(*list);
  }

 private:
  // Kept once loaded, since libnvfm can be initialised only once a process; tried again with the
  // next request if it is not there yet.
  Status LoadClient(const std::string& library) {
    if (client_ != nullptr) return OkStatus();
    ASSIGN_OR_RETURN(std::unique_ptr<NvfmApi> api, LoadNvfm(library));
    client_ = std::make_unique<FmClient>(std::move(api));
    return OkStatus();
  }

  std::unique_ptr<FmClient> client_;
};

// Ends the process when the agent is gone, even while a vendor library hangs on the other thread.
void ExitWhenHungUp(int fd) {
  while (!IsHungUp(fd)) {
    pollfd poll_fd{fd, POLLRDHUP, 0};
    (void)::poll(&poll_fd, 1, -1);
  }
  ::_exit(0);
}

bool StartWatchdog(int fd) {
  try {
    std::thread(ExitWhenHungUp, fd).detach();
    return true;
  } catch (const std::system_error&) {  // no more threads
    return false;
  }
}

}  // namespace

int RunFabricHelper(int fd) {
  (void)::prctl(PR_SET_NAME, "switchyard-fm");
  // Children of a vendor library (nvidia-modprobe) must not keep the channel open.
  (void)::fcntl(fd, F_SETFD, FD_CLOEXEC);
  // A terminal's Ctrl-C and a service manager's stop reach the whole group; the helper's end is
  // the agent's end, so that the agent never sees it die first and calls it a crash.
  (void)::signal(SIGINT, SIG_IGN);
  (void)::signal(SIGTERM, SIG_IGN);
  if (!StartWatchdog(fd)) return 1;

  HelperServer server;
  while (true) {
    const Result<std::string> request = ReceiveMessage(fd, absl::InfiniteDuration());
    if (!request.ok()) return absl::IsUnavailable(request.status()) ? 0 : 1;
    const std::string reply = EncodeReply(server.Serve(*request));
    if (!SendMessage(fd, reply, absl::InfiniteDuration()).ok()) return 0;
  }
}

}  // namespace switchyard::fabric
