// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"switchyard/tests/cluster/lab"
)

// What the agent has to reckon with: a pod that is deleted with a grace period keeps its GPUs until its
// containers have ended; one that is deleted without loses them at once, and may hold them still when
// the next pod has got them. That kubelet no longer lists a pod says nothing of its containers.
func TestADeletedPodsGPUsMayBeGivenOnWhileItRuns(t *testing.T) {
	c := lab.Start(t, lab.Options{AgentConfig: jsonLog})
	c.WaitAllocatable(h100, 8)
	pod := lab.Pod("first", lab.Container("vm", h100, 8))
	long := int64(1000)
	pod.Spec.TerminationGracePeriodSeconds = &long
	c.Admitted(pod)
	devices := c.Devices("first")["vm"]

	c.BeginDelete("first") // sleep, as process 1, ignores SIGTERM
	c.CreatePod(lab.Pod("second", lab.Container("vm", h100, 8)))
	c.WaitUnschedulable("second")
	if got := c.Devices("first")["vm"]; !slices.Equal(got, devices) {
		t.Errorf("while it ends the pod has %v, before %v", got, devices)
	}

	mark := c.Agent.Log().Mark()
	c.Containerd.Kill() // nobody ends containers now; kubelet goes on for 30 s
	c.Kubectl("delete", "pod", "first", "--force", "--grace-period=0", "--wait=false")
	c.Agent.WaitLogAfter(mark, `"event":"allocate"`)
	if got := c.Devices("second")["vm"]; !slices.Equal(got, devices) {
		t.Errorf("the second pod has %v, the first one had %v", got, devices)
	}
	expectUnknownToKubelet(t, c, "first")
	if !runs(c, "first") {
		t.Error("the first pod's container has ended")
	}
	c.Containerd.Start()
	c.WaitRunning("second")
}

// The agent tells by this answer that a pod is gone: it has a text, and no code of its own.
func expectUnknownToKubelet(t *testing.T, c *lab.Cluster, pod string) {
	t.Helper()
	client, done := c.PodResources()
	defer done()
	_, err := client.Get(t.Context(), &podresources.GetPodResourcesRequest{
		PodName: pod, PodNamespace: "default",
	})
	got := status.Convert(err)
	want := "pod " + pod + " in namespace default not found"
	if got.Code() != codes.Unknown || got.Message() != want {
		t.Errorf("PodResources Get: %v, want code Unknown and %q", err, want)
	}
}

// runs looks for a process with a pod's name and GPUs in its environment.
func runs(c *lab.Cluster, pod string) bool {
	found := c.Exec("sh", "-c", "grep -lsw HOSTNAME="+pod+" $(grep -lsw "+h100Env+
		" /proc/[0-9]*/environ) /dev/null || true")
	return strings.Contains(found, "/proc/")
}
