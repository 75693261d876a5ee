// SPDX-License-Identifier: Apache-2.0
#include "base/fd_watcher.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>

#include <system_error>

namespace switchyard {

FdWatcher::FdWatcher(std::string name, int fd, Callback readable)
    : stop_(::eventfd(0, EFD_CLOEXEC)), readable_(std::move(readable)) {
  if (!stop_.valid()) return;
  try {
    thread_ = std::thread([this, fd, name = std::move(name)] {
      pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
      Run(fd);
    });
  } catch (const std::system_error&) {  // no more threads: watches() is false
  }
}

FdWatcher::~FdWatcher() {
  if (!watches()) return;
  (void)::eventfd_write(stop_.get(), 1);
  thread_.join();
}

void FdWatcher::Run(int fd) {
  pollfd fds[] = {{stop_.get(), POLLIN, 0}, {fd, POLLIN, 0}};
  while (true) {
    if (::poll(fds, 2, -1) < 0) continue;  // EINTR
    if (fds[0].revents != 0) return;
    // An error alone is for the reader too: reading is what clears it (a netlink socket that lost
    // messages).
    if ((fds[1].revents & (POLLIN | POLLERR)) == 0 && fds[1].revents != 0) {
      fds[1].fd = -1;  // hung up: nothing will come any more; wait for the end
      continue;
    }
    if (fds[1].revents != 0) readable_();
  }
}

}  // namespace switchyard
