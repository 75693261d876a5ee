// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"maps"
	"slices"
	"testing"

	"switchyard/tests/cluster/lab"
)

// holding is what must not change for a running pod, whatever ends around it.
type holding struct {
	container string // the very container: a restarted one has another id
	devices   []string
}

// held looks at running pods of one container each, called "vm".
func held(c *lab.Cluster, pods ...string) map[string]holding {
	all := map[string]holding{}
	for _, pod := range pods {
		status := c.WaitRunning(pod).Status.ContainerStatuses[0]
		all[pod] = holding{status.ContainerID, c.Devices(pod)["vm"]}
	}
	return all
}

func expectUntouched(t *testing.T, c *lab.Cluster, before map[string]holding) {
	t.Helper()
	now := held(c, slices.Sorted(maps.Keys(before))...)
	for pod, was := range before {
		is := now[pod]
		if is.container != was.container || !slices.Equal(is.devices, was.devices) {
			t.Errorf("pod %s was %v and is %v", pod, was, is)
		}
	}
}

// kubeletIsBack waits until a kubelet that was started after the mark of its log is as it was before.
func kubeletIsBack(c *lab.Cluster, mark int64, pods ...string) {
	kubeletHas(c, mark, h100, "8")
	c.WaitReady()
	c.WaitAllocatable(h100, 8)
	for _, pod := range pods {
		c.WaitKnown(pod)
	}
}

// admitPair admits a pod of two GPUs, which must be a partition and nobody else's.
func admitPair(t *testing.T, c *lab.Cluster, pod string) {
	t.Helper()
	before := c.Holders(h100)
	c.Admitted(lab.Pod(pod, lab.Container("vm", h100, 2)))
	devices := c.Devices(pod)["vm"]
	if _, ok := c.Board().PartitionOf(devices); !ok {
		t.Errorf("pod %s: %v is no partition", pod, devices)
	}
	for _, device := range devices {
		if other, taken := before[device]; taken {
			t.Errorf("pod %s has %s, which pod %s has", pod, device, other)
		}
	}
}

// allEight: all GPUs are in use, each by one pod.
func allEight(t *testing.T, c *lab.Cluster) {
	t.Helper()
	if holders := c.Holders(h100); len(holders) != 8 {
		t.Errorf("PodResources has %v, want eight devices", holders)
	}
}

func TestPodsGoOnWhenKubeletRestarts(t *testing.T) {
	c := lab.Start(t, lab.Options{})
	c.WaitAllocatable(h100, 8)
	admitPair(t, c, "a")
	before := held(c, "a")
	for _, pod := range []string{"b", "c"} {
		if pod == "b" {
			c.Kubelet.Stop()
		} else {
			c.Kubelet.Kill()
		}
		mark := c.Kubelet.Log().Mark()
		c.Kubelet.Start()
		kubeletIsBack(c, mark, "a")
		expectUntouched(t, c, before)
		admitPair(t, c, pod)
	}
	admitPair(t, c, "d")
	allEight(t, c)
	expectUntouched(t, c, before)
}

func TestPodsGoOnWhenTheAgentEnds(t *testing.T) {
	c := lab.Start(t, lab.Options{})
	c.WaitAllocatable(h100, 8)
	admitPair(t, c, "a")
	before := held(c, "a")
	for _, pod := range []string{"b", "c"} {
		if pod == "b" {
			c.Agent.Stop()
		} else {
			c.Agent.Kill()
		}
		c.WaitAllocatable(h100, 0)
		expectUntouched(t, c, before)
		mark := c.Kubelet.Log().Mark()
		c.Agent.Start()
		kubeletHas(c, mark, h100, "8")
		c.WaitAllocatable(h100, 8)
		admitPair(t, c, pod)
	}
	admitPair(t, c, "d")
	allEight(t, c)
	expectUntouched(t, c, before)
}
