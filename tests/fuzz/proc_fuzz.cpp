// SPDX-License-Identifier: Apache-2.0
// What a process may put into its own files of /proc: its command stands in "stat", and the folders
// it makes in its own cgroup stand in "cgroup".
#include <cstdint>
#include <cstdlib>

#include "kube/pod_of_cgroup.h"
#include "pci/process.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto state = switchyard::pci::ParseStat(text); state.ok() && state->over) {
    if (text.find('Z') == absl::string_view::npos && text.find('X') == absl::string_view::npos)
      std::abort();
  }
  const std::string cgroup = switchyard::pci::DeepestCgroup(text);
  for (const absl::string_view path : {absl::string_view(cgroup), text}) {
    const auto pod = switchyard::kube::PodOf(path);
    if (!pod.has_value()) continue;
    if (pod->uid.size() != 36 && pod->uid.size() != 32) std::abort();
    // What is below a pod's cgroup, the pod's to name, says nothing.
    if (switchyard::kube::PodOf(std::string(path) + "/kubepods/pod" + pod->uid) != pod)
      std::abort();
  }
  return 0;
}
