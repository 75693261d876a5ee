// SPDX-License-Identifier: Apache-2.0
#include "base/worker.h"

#include <pthread.h>

namespace switchyard {

Worker::Worker(std::string name, Clock& clock, Step step)
    : clock_(clock), step_(std::move(step)), thread_([this, name = std::move(name)] {
        pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
        while (!stopping_) wakeup_.WaitFor(clock_, step_());
      }) {}

Worker::~Worker() { Stop(); }

void Worker::Stop() {
  stopping_ = true;
  wakeup_.Notify();
  if (thread_.joinable()) thread_.join();
}

}  // namespace switchyard
