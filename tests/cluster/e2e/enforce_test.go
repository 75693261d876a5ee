// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"switchyard/tests/cluster/lab"
)

// A kubelet that lost its checkpoint offers the GPUs of a running VM again. In enforce the agent
// remembers whose they are and sees that they are open: no other pod gets them. (One for which it chose
// them is rejected; see TestKubeletForgetsDevicesWithItsCheckpoint for what happens without enforce.)
func TestEnforceGivesAHeldGPUToNobodyElse(t *testing.T) {
	c := lab.Start(t, lab.Options{AgentConfig: map[string]string{
		"fabric.mode": enforce, "allocate.wait": "1s",
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
		pod := admittedOrRejected(c, name)
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
