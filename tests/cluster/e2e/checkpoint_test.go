// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"testing"

	"switchyard/tests/cluster/lab"
)

// A real kubelet whose checkpoint is gone: its pods go on, but it no longer knows that they have
// devices, and gives them to the next pods. Without a word of kubelet's the agent can't know better: its
// view is PodResources, here and afterwards. What protects the first pod is the lock that its own
// process has on the devices.
func TestKubeletForgetsDevicesWithItsCheckpoint(t *testing.T) {
	c := lab.Start(t, lab.Options{})
	c.WaitAllocatable(h100, 8)
	admitPair(t, c, "a")
	a := held(c, "a")["a"]

	c.Kubelet.Stop()
	if err := os.Remove(c.Path("kubelet/device-plugins/kubelet_internal_checkpoint")); err != nil {
		t.Fatal(err)
	}
	mark := c.Kubelet.Log().Mark()
	c.Kubelet.Start()
	kubeletIsBack(c, mark, "a")
	if now := held(c, "a")["a"]; now.container != a.container || len(now.devices) != 0 {
		t.Errorf("pod a was %v and is %v, want it to run on without devices", a, now)
	}

	// The next pair is the best one of eight free GPUs again, and everything fits but what a has.
	c.Admitted(lab.Pod("b", lab.Container("vm", h100, 2)))
	if b := c.Devices("b")["vm"]; !slices.Equal(b, a.devices) {
		t.Errorf("pod b has %v, want what kubelet forgot, %v", b, a.devices)
	}
	admitPair(t, c, "c")
	expectBusy(t, c)

	// With a gone nothing of it is left to confuse anybody.
	c.DeletePod("a")
	admitPair(t, c, "d")
	admitPair(t, c, "e")
	expectBusy(t, c)
	allEight(t, c)
}

// expectBusy: what the agent calls busy is what kubelet says somebody has.
func expectBusy(t *testing.T, c *lab.Cluster) {
	t.Helper()
	var state struct {
		Partitions []struct {
			Modules []int  `json:"modules"`
			Use     string `json:"use"`
		} `json:"partitions"`
	}
	text := c.Exec("switchyard", "partitions", "-o", "json", "--config", "/run/cluster/agent.yaml")
	if err := json.Unmarshal([]byte(text), &state); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	board := c.Board()
	var taken []int
	for address := range maps.Keys(c.Holders(h100)) {
		gpu, _ := board.ByAddress(address)
		taken = append(taken, gpu.Module)
	}
	if len(state.Partitions) == 0 {
		t.Fatalf("no partitions: %s", text)
	}
	for _, partition := range state.Partitions {
		want := "free"
		if slices.ContainsFunc(partition.Modules, func(m int) bool { return slices.Contains(taken, m) }) {
			want = "busy"
		}
		if partition.Use != want {
			t.Errorf("partition of modules %v is %s, want %s: kubelet has given %v", partition.Modules,
				partition.Use, want, taken)
		}
	}
}
