// SPDX-License-Identifier: Apache-2.0
#include "kube/api/name_lookup.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <pthread.h>

#include <array>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"

namespace switchyard::kube::api {
namespace {

using Addresses = std::vector<std::string>;

Result<Addresses> LookUp(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (const int code = ::getaddrinfo(host.c_str(), nullptr, &hints, &list); code != 0)
    return absl::UnavailableError(absl::StrCat("looking up ", host, ": ", ::gai_strerror(code)));
  Addresses addresses;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    std::array<char, NI_MAXHOST> text{};
    if (::getnameinfo(entry->ai_addr, entry->ai_addrlen, text.data(), text.size(), nullptr, 0,
                      NI_NUMERICHOST) == 0)
      addresses.emplace_back(text.data());
  }
  ::freeaddrinfo(list);
  if (addresses.empty()) return absl::UnavailableError(absl::StrCat(host, " has no address"));
  return addresses;
}

}  // namespace

bool IsAddress(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  return ::inet_pton(AF_INET, host.c_str(), bytes.data()) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), bytes.data()) == 1;
}

NameLookup::NameLookup(std::string host)
    : host_(std::move(host)), state_(std::make_shared<State>()) {}

Result<Addresses> NameLookup::Wait(absl::Duration timeout) {
  if (IsAddress(host_)) return Addresses{host_};
  std::unique_lock lock(state_->mutex);
  if (!std::exchange(state_->running, true)) {
    try {
      std::thread([state = state_, host = host_] {
        ::pthread_setname_np(::pthread_self(), "name-lookup");
        Result<Addresses> found = LookUp(host);
        const std::lock_guard done(state->mutex);
        state->found = std::move(found);
        state->running = false;
        state->changed.notify_all();
      }).detach();
    } catch (const std::system_error& error) {
      state_->running = false;
      return absl::UnavailableError(
          absl::StrCat("looking up ", host_, ": no thread can be started: ", error.what()));
    }
  }
  state_->changed.wait_for(lock, absl::ToChronoMilliseconds(timeout),
                           [this] { return state_->cancelled || !state_->running; });
  if (state_->cancelled) return absl::CancelledError("closed");
  if (state_->running) return absl::DeadlineExceededError(absl::StrCat("looking up ", host_));
  return state_->found;
}

void NameLookup::Cancel() {
  const std::lock_guard lock(state_->mutex);
  state_->cancelled = true;
  state_->changed.notify_all();
}

}  // namespace switchyard::kube::api
