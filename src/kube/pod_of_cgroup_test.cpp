// SPDX-License-Identifier: Apache-2.0
#include "kube/pod_of_cgroup.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace switchyard::kube {
namespace {

constexpr char kUid[] = "0d1e2f3a-4b5c-6d7e-8f90-a1b2c3d4e5f6";
constexpr char kStatic[] = "0123456789abcdef0123456789abcdef";
#define U_UID "0d1e2f3a_4b5c_6d7e_8f90_a1b2c3d4e5f6"
#define H_UID "0d1e2f3a-4b5c-6d7e-8f90-a1b2c3d4e5f6"
#define ID "9f8e7d6c5b4a39281706f5e4d3c2b1a09f8e7d6c5b4a39281706f5e4d3c2b1a0"

struct Case {
  const char* what;
  const char* path;
  const char* uid;  // null: no pod
  const char* qos = "";
};

constexpr Case kCases[] = {
    // Driver cgroupfs.
    {"containerd, v1 or v2", "/kubepods/burstable/pod" H_UID "/" ID, kUid, "Burstable"},
    {"best effort", "/kubepods/besteffort/pod" H_UID "/" ID, kUid, "BestEffort"},
    {"guaranteed", "/kubepods/pod" H_UID "/" ID, kUid, "Guaranteed"},
    {"the pod itself", "/kubepods/pod" H_UID, kUid, "Guaranteed"},
    {"a static pod", "/kubepods/burstable/pod0123456789abcdef0123456789abcdef/" ID, kStatic,
     "Burstable"},
    {"CRI-O", "/kubepods/besteffort/pod" H_UID "/crio-" ID, kUid, "BestEffort"},
    {"kubelet with a root of its own", "/kubelet/kubepods/pod" H_UID "/" ID, kUid, "Guaranteed"},
    {"Kata, monitor in the sandbox's cgroup", "/kubepods/burstable/pod" H_UID "/kata_" ID, kUid,
     "Burstable"},
    // Driver systemd.
    {"containerd",
     "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" U_UID
     ".slice/cri-containerd-" ID ".scope",
     kUid, "Burstable"},
    {"containerd, guaranteed",
     "/kubepods.slice/kubepods-pod" U_UID ".slice/cri-containerd-" ID ".scope", kUid, "Guaranteed"},
    {"CRI-O, a cgroup within",
     "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" U_UID ".slice/crio-" ID
     ".scope/container",
     kUid, "BestEffort"},
    {"a static pod",
     "/kubepods.slice/kubepods-pod0123456789abcdef0123456789abcdef.slice/crio-" ID ".scope",
     kStatic, "Guaranteed"},
    {"kubelet with a root of its own",
     "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/"
     "kubelet-kubepods-burstable-pod" U_UID ".slice/cri-containerd-" ID ".scope",
     kUid, "Burstable"},
    {"systemd's kubelet, a runtime on cgroupfs",
     "/system.slice/containerd.service/kubepods-burstable-pod" U_UID ".slice:cri-containerd:" ID,
     kUid, "Burstable"},
    {"Kata", "/kubepods.slice/kubepods-pod" U_UID ".slice/kata_" ID, kUid, "Guaranteed"},
    // From within a cgroup namespace.
    {"another class",
     "/../../../kubepods-besteffort.slice/kubepods-besteffort-pod" U_UID ".slice/crio-" ID ".scope",
     kUid, "BestEffort"},
    {"cgroupfs, another class", "/../../../besteffort/pod" H_UID "/" ID, kUid, "BestEffort"},
    {"cgroupfs, the same class", "/../../pod" H_UID "/" ID, kUid, ""},
    // What a container makes below its own cgroup.
    {"a pod in a pod",
     "/kubepods/pod" H_UID "/" ID "/kubepods/besteffort/pod11111111-2222-3333-4444-555555555555",
     kUid, "Guaranteed"},
    // No pod.
    {"none", "/", nullptr},
    {"empty", "", nullptr},
    {"a service", "/system.slice/containerd.service", nullptr},
    {"a user", "/user.slice/user-1000.slice/session-3.scope", nullptr},
    {"Docker", "/docker/" ID, nullptr},
    {"Podman", "/machine.slice/libpod-" ID ".scope", nullptr},
    {"kubelet's own parts", "/kubepods.slice/kubepods-burstable.slice", nullptr},
    {"Kata's overhead", "/kata_overhead/" ID, nullptr},
    {"a sibling in a namespace, no pod named", "/../cri-containerd-" ID ".scope", nullptr},
    {"no UID", "/kubepods/burstable/podman/" ID, nullptr},
    {"a short UID", "/kubepods/pod0d1e2f3a/" ID, nullptr},
    {"capital letters", "/kubepods/pod0D1E2F3A-4B5C-6D7E-8F90-A1B2C3D4E5F6", nullptr},
    {"hyphens elsewhere", "/kubepods/pod0d1e2f3a4-b5c-6d7e-8f90-a1b2c3d4e5f6", nullptr},
    {"somebody's folder", "/build/pod" H_UID, nullptr},
    {"somebody's class", "/kubepods/turbo/pod" H_UID, nullptr},
    {"a class elsewhere", "/build/burstable/pod" H_UID, nullptr},
    {"somebody's slice", "/build.slice/build-pod" U_UID ".slice", nullptr},
    {"a class that is none", "/x.slice/kubepods-turbo-pod" U_UID ".slice", nullptr},
    {"a scope", "/kubepods.slice/kubepods-pod" U_UID ".scope", nullptr},
    {"not from the root", "kubepods/pod" H_UID, nullptr},
};

TEST(PodOfCgroupTest, Table) {
  for (const Case& one : kCases) {
    SCOPED_TRACE(absl::StrCat(one.what, ": ", one.path));
    const std::optional<PodOfCgroup> pod = PodOf(one.path);
    ASSERT_EQ(pod.has_value(), one.uid != nullptr);
    if (!pod.has_value()) continue;
    EXPECT_EQ(*pod, (PodOfCgroup{one.uid, one.qos}));
  }
}

}  // namespace
}  // namespace switchyard::kube
