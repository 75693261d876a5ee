// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"switchyard/tests/cluster/lab"
)

// Kubelet and agent are killed while a pod is being admitted, at two moments: while kubelet waits for
// the agent's preference, and when the agent has just answered Allocate. The pod may then be rejected:
// a kubelet that starts admits what it finds, whether its plugins are back or not. That must be all.
func TestNothingIsLostWhenKubeletAndAgentAreKilledInAnAdmission(t *testing.T) {
	c := lab.Start(t, lab.Options{})
	// "-v 2" says too little of an admission.
	c.Kubelet.Argv[slices.Index(c.Kubelet.Argv, "-v")+1] = "4"
	mark := c.Kubelet.Log().Mark()
	c.Kubelet.Restart()
	kubeletHas(c, mark, h100, "8")
	c.WaitAllocatable(h100, 8)
	admitPair(t, c, "bystander")
	before := held(c, "bystander")

	asked := func() {
		mark := c.Kubelet.Log().Mark()
		c.Agent.Pause()
		c.CreatePod(lab.Pod("asked", lab.Container("vm", h100, 2)))
		c.Kubelet.WaitLogAfter(mark, `"Issuing a GetPreferredAllocation call for container"`)
	}
	answered := func() {
		mark := c.Agent.Log().Mark()
		c.CreatePod(lab.Pod("answered", lab.Container("vm", h100, 2)))
		c.Agent.WaitLogAfter(mark, "event=allocate ")
	}
	for _, test := range []struct {
		pod   string
		begin func()
		start []*lab.Component
	}{
		{"asked", asked, []*lab.Component{c.Agent, c.Kubelet}},
		{"answered", answered, []*lab.Component{c.Kubelet, c.Agent}},
	} {
		test.begin()
		c.Kubelet.Kill()
		c.Agent.Kill()
		mark := c.Kubelet.Log().Mark()
		for _, component := range test.start {
			component.Start()
		}
		kubeletIsBack(c, mark, slices.Collect(maps.Keys(before))...)
		expectUntouched(t, c, before)
		pod := admittedOrRejected(c, test.pod)
		t.Logf("pod %s is %s: %s %s", test.pod, pod.Status.Phase, pod.Status.Reason, pod.Status.Message)
		if pod.Status.Phase == corev1.PodFailed {
			c.DeletePod(test.pod)
			admitPair(t, c, test.pod) // as its controller would make a new one
		} else if _, ok := c.Board().PartitionOf(c.Devices(test.pod)["vm"]); !ok {
			t.Errorf("pod %s: %v is no partition", test.pod, c.Devices(test.pod)["vm"])
		}
		before = held(c, "bystander", test.pod)
	}
	admitPair(t, c, "last")
	allEight(t, c)
}
