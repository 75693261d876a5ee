// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"switchyard/tests/cluster/lab"
)

// A kubelet that lost its checkpoint offers the GPUs of a running VM again. In enforce the agent
// remembers whose they are and sees that they are open: no other pod gets them. (One for which it chose
// them is rejected; see TestKubeletForgetsDevicesWithItsCheckpoint for what happens without enforce.)
func TestEnforceGivesAHeldGPUToNobodyElse(t *testing.T) {
	c := lab.Start(t, lab.Options{AgentConfig: map[string]string{
		"fabric.mode": "enforce", "allocate.wait": "1s",
	}})
	c.WaitAllocatable(h100, 8)
	c.Admitted(lab.Pod("vm", holdingContainer(h100, 2)))
	vm := held(c, "vm")["vm"]
	showProcess(t, c, "vm")
	active := func() bool {
		partition, ok := c.Board().PartitionOf(vm.devices)
		return ok && partition.Active
	}
	if !active() {
		t.Errorf("%v is no active partition", vm.devices)
	}

	c.Kubelet.Stop()
	c.Exec("rm", "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint")
	mark := c.Kubelet.Log().Mark()
	c.Kubelet.Start()
	kubeletIsBack(c, mark, "vm")
	for _, name := range []string{"a", "b", "c"} {
		c.CreatePod(lab.Pod(name, lab.Container("vm", h100, 2)))
		pod := c.WaitPod(name, "be admitted or rejected", func(pod *corev1.Pod) bool {
			return pod.Status.Phase == corev1.PodRunning || pod.Status.Phase == corev1.PodFailed
		})
		if pod.Status.Phase == corev1.PodFailed {
			t.Logf("pod %s: %s", name, pod.Status.Message)
			continue
		}
		for _, device := range c.Devices(name)["vm"] {
			if slices.Contains(vm.devices, device) {
				t.Errorf("pod %s has %s, which pod vm holds open", name, device)
			}
		}
	}
	if now := held(c, "vm")["vm"]; now.container != vm.container || !active() {
		t.Errorf("pod vm was %v and is %v; its partition is active: %v", vm, now, active())
	}
}

// holdingContainer has its GPUs' nodes open, as a VM's launcher has.
func holdingContainer(resource string, count int64) corev1.Container {
	container := lab.Container("vm", resource, count)
	script := &container.Command[len(container.Command)-1]
	*script = strings.Replace(*script, "exec sleep", `fd=3
for node in /dev/vfio/[0-9]*; do eval "exec $fd< $node"; fd=$((fd + 1)); done
exec sleep`, 1)
	return container
}

// showProcess puts a pod's process into the simulated node's /proc, where the agent looks for holders.
func showProcess(t *testing.T, c *lab.Cluster, pod string) {
	t.Helper()
	_, id, _ := strings.Cut(c.WaitRunning(pod).Status.ContainerStatuses[0].ContainerID, "://")
	for line := range strings.Lines(c.Exec("ctr", "tasks", "list")) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == id {
			c.Exec("ln", "-s", "/proc/"+fields[1], lab.Inside("sim/root/proc", fields[1]))
			return
		}
	}
	t.Fatalf("containerd has no task %s", id)
}
