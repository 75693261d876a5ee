// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests: the folder that kubelet gives a pod, with a token and a CA, removed at the end.

#include <stdlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "kube/api/in_cluster.h"

namespace switchyard::kube::api::testing {

class ServiceAccount {
 public:
  ServiceAccount() {
    char path[] = "/tmp/sa.XXXXXX";
    folder_ = ::mkdtemp(path);
    Write("token", "first\n");
  }
  ~ServiceAccount() { std::filesystem::remove_all(folder_); }
  ServiceAccount(const ServiceAccount&) = delete;
  ServiceAccount& operator=(const ServiceAccount&) = delete;

  void Write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ + "/" + name) << content;
  }
  void Remove(const std::string& name) const { std::filesystem::remove(folder_ + "/" + name); }
  [[nodiscard]] InCluster At(const std::string& host, std::uint16_t port) const {
    return {host, port, folder_};
  }
  [[nodiscard]] const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
};

}  // namespace switchyard::kube::api::testing
