// SPDX-License-Identifier: Apache-2.0

// Package e2e holds the agent against a real kubelet, scheduler and container runtime.
package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"switchyard/tests/cluster/lab"
)

const (
	h100     = "nvidia.com/GH100_H100_SXM5_80GB"
	h100Env  = "PCI_RESOURCE_NVIDIA_COM_GH100_H100_SXM5_80GB"
	anyPlace = "/dev/vfio/vfio"
)

func TestRegistrationAndAllocatable(t *testing.T) {
	c := lab.Start(t, lab.Options{})
	c.WaitAllocatable(h100, 8)
	node := c.Node()
	for name, quantity := range node.Status.Capacity {
		if strings.HasPrefix(string(name), "nvidia.com/") && string(name) != h100 {
			t.Errorf("the node also offers %s: %s", name, quantity.String())
		}
	}
	if capacity := node.Status.Capacity[h100]; capacity.Value() != 8 {
		t.Errorf("capacity %s, want 8", capacity.String())
	}
}

// What KubeVirt's launcher finds: the addresses in its environment, and the nodes of their groups.
func TestAPodHasTheEnvironmentAndNodesOfTheKubevirtContract(t *testing.T) {
	c := lab.Start(t, lab.Options{})
	c.WaitAllocatable(h100, 8)
	c.Admitted(lab.Pod("vm", lab.Container("launcher", h100, 2)))

	view := c.View("vm", "launcher")
	addresses := strings.Split(view.Env[h100Env], ",")
	if len(addresses) != 2 {
		t.Fatalf("%s=%q, want two addresses; the environment: %v", h100Env, view.Env[h100Env], view.Env)
	}
	sorted := slices.Sorted(slices.Values(addresses))
	if got := c.Devices("vm")["launcher"]; !slices.Equal(got, sorted) {
		t.Errorf("kubelet's PodResources: %v, the environment: %v", got, sorted)
	}
	for name := range view.Env {
		if strings.Contains(name, "NVIDIA") && name != h100Env {
			t.Errorf("the environment also has %s", name)
		}
	}

	board := c.Board()
	want := kubevirtNodes(t, board, addresses)
	if got := view.Paths(); !slices.Equal(got, want) {
		t.Errorf("nodes %v, want exactly %v", got, want)
	}
	expectUsable(t, view)
	if _, ok := board.PartitionOf(addresses); !ok {
		t.Errorf("%v is no partition", addresses)
	}
}

// kubevirtNodes are the nodes of a container with these GPUs, by path.
func kubevirtNodes(t *testing.T, board lab.Board, addresses []string) []string {
	t.Helper()
	want := []string{anyPlace}
	for _, address := range addresses {
		gpu, found := board.ByAddress(address)
		if !found {
			t.Fatalf("%s is none of the board", address)
		}
		want = append(want, fmt.Sprintf("/dev/vfio/%d", gpu.IOMMUGroup))
	}
	slices.Sort(want)
	return want
}

// expectUsable: nodes open and are different devices, so that holders can be told apart.
func expectUsable(t *testing.T, view lab.View) {
	t.Helper()
	seen := map[string]string{}
	for _, node := range view.Nodes {
		if !node.Opens {
			t.Errorf("%s does not open in the container", node.Path)
		}
		if other, twice := seen[node.Kind+node.Number]; twice {
			t.Errorf("%s and %s are one device", node.Path, other)
		}
		seen[node.Kind+node.Number] = node.Path
	}
}

func TestFourPodsOfTwoGPUsEachLandOnAPartition(t *testing.T) {
	c := lab.Start(t, lab.Options{})
	c.WaitAllocatable(h100, 8)
	board := c.Board()
	var partitions []int
	for _, name := range []string{"a", "b", "c", "d"} {
		c.Admitted(lab.Pod(name, lab.Container("vm", h100, 2)))
		devices := c.Devices(name)["vm"]
		partition, ok := board.PartitionOf(devices)
		if !ok {
			t.Fatalf("pod %s: %v is no partition", name, devices)
		}
		partitions = append(partitions, partition.ID)
	}
	slices.Sort(partitions)
	if want := []int{3, 4, 5, 6}; !slices.Equal(partitions, want) {
		t.Errorf("partitions %v, want the four pairs %v", partitions, want)
	}
	c.CreatePod(lab.Pod("e", lab.Container("vm", h100, 1)))
	c.WaitUnschedulable("e")
	// The room of a pod that goes is the next one's.
	c.DeletePod("b")
	if pod := c.WaitRunning("e"); pod.Status.Phase != corev1.PodRunning {
		t.Errorf("pod e: %s", pod.Status.Phase)
	}
}
