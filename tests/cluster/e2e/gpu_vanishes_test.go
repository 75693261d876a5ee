// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"switchyard/tests/cluster/lab"
)

// A GPU falls off the bus and comes back. What the node offers follows, its capacity does not, and
// pods are left alone.
func TestAllocatableFollowsAGPUThatVanishesAndReturns(t *testing.T) {
	c := lab.Start(t, lab.Options{AgentConfig: jsonLog})
	c.WaitAllocatable(h100, 8)
	c.Admitted(lab.Pod("holder", lab.Container("vm", h100, 1)))
	held := c.Devices("holder")["vm"]

	board := c.Board()
	holder, found := board.ByAddress(held[0])
	if !found {
		t.Fatalf("%v is none of the board", held)
	}
	// One that is free and breaks a quad that has a pair to spare.
	gone := lab.GPU{}
	for _, gpu := range board.GPUs {
		if gpu.NUMANode != holder.NUMANode {
			gone = gpu
		}
	}

	vanish(t, c, gone.Address, 7)
	now := newPlacement(c.Board())
	now.put(t, "holder", 1, held)
	for _, pod := range []string{"pair-a", "pair-b"} {
		c.Admitted(lab.Pod(pod, lab.Container("vm", h100, 2)))
		now.put(t, pod, 2, c.Devices(pod)["vm"])
	}
	c.CreatePod(lab.Pod("whole", lab.Container("vm", h100, 8)))
	c.WaitUnschedulable("whole")

	// One with a pod on it: the pod runs on, and nobody else gets the GPU.
	vanish(t, c, holder.Address, 6)
	if phase := c.WaitRunning("holder").Status.Phase; phase != corev1.PodRunning {
		t.Errorf("the pod on the vanished GPU: %s", phase)
	}
	returns(t, c, holder.Address, 7)
	if got := c.Devices("holder")["vm"]; got[0] != held[0] {
		t.Errorf("the pod had %v and has %v", held, got)
	}

	returns(t, c, gone.Address, 8)
	deletePods(c, "pair-a", "pair-b", "holder")
	c.WaitRunning("whole")
	newPlacement(c.Board()).put(t, "whole", 8, c.Devices("whole")["vm"])
}

func vanish(t *testing.T, c *lab.Cluster, address string, allocatable int64) {
	t.Helper()
	mark := c.Agent.Log().Mark()
	c.Sim("fault", "device", address, "vanish")
	c.WaitAllocatable(h100, allocatable)
	expectCapacity(t, c)
	expectEvent(t, c, mark, "device_unhealthy", address)
}

func returns(t *testing.T, c *lab.Cluster, address string, allocatable int64) {
	t.Helper()
	mark := c.Agent.Log().Mark()
	c.Sim("fault", "device", address, "return")
	c.WaitAllocatable(h100, allocatable)
	expectCapacity(t, c)
	expectEvent(t, c, mark, "device_healthy", address)
}

// A device that may come back is still one of the node's.
func expectCapacity(t *testing.T, c *lab.Cluster) {
	t.Helper()
	if capacity := c.Node().Status.Capacity[h100]; capacity.Value() != 8 {
		t.Errorf("capacity %s, want 8", capacity.String())
	}
}

func expectEvent(t *testing.T, c *lab.Cluster, mark int64, name, address string) {
	t.Helper()
	events := eventsSince(t, c, mark, name)
	other := func(e event) bool { return e["pci"] != address }
	if len(events) == 0 || slices.ContainsFunc(events, other) {
		t.Errorf("events %v, want %s of %s alone", events, name, address)
	}
}
