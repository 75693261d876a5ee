// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"tags.cncf.io/container-device-interface/pkg/cdi"
	"tags.cncf.io/container-device-interface/pkg/parser"

	"switchyard/tests/cluster/lab"
)

// Kata's device ids are numbers that say nothing of a GPU's place; the partitions are found all the
// same, and what the CDI file says of an id is that very GPU.
func TestKataPodsLandOnPartitions(t *testing.T) {
	c := lab.Start(t, lab.Options{
		Consumer: "kata", Hardware: []string{"--iommufd", "on"}, AgentConfig: jsonLog,
	})
	c.WaitAllocatable(pgpu, 8)
	now := newPlacement(c.Board())
	for i, size := range []int{1, 4, 2, 1} {
		mark := c.Agent.Log().Mark()
		name := fmt.Sprintf("pod%d-of%d", i, size)
		c.Admitted(lab.Pod(name, lab.Container("kata", pgpu, int64(size))))
		ids := c.Devices(name)["kata"]
		addresses := addressesInCDI(t, c, now.board, ids)
		now.put(t, name, size, addresses)
		if _, is := now.board.PartitionOf(addresses); !is {
			t.Errorf("pod %s: %v is no partition", name, addresses)
		}
		asked := eventsSince(t, c, mark, "preferred")
		if len(asked) != 1 {
			t.Fatalf("pod %s: kubelet asked %v, want once", name, asked)
		}
		// The answer is in the plugin's ids, and kubelet takes all of it.
		if chosen := slices.Sorted(slices.Values(asked[0].list("chosen"))); !slices.Equal(chosen, ids) {
			t.Errorf("pod %s: preferred were %v, it has %v", name, chosen, ids)
		}
		expectUsable(t, c.View(name, "kata"))
	}
	c.CreatePod(lab.Pod("late", lab.Container("kata", pgpu, 1)))
	c.WaitUnschedulable("late")
}

// addressesInCDI are the GPUs whose nodes the CDI files name for these ids, one for each.
func addressesInCDI(t *testing.T, c *lab.Cluster, board lab.Board, ids []string) (addresses []string) {
	t.Helper()
	files, err := cdi.NewCache(cdi.WithSpecDirs(c.Path("cdi")), cdi.WithAutoRefresh(false))
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		device := files.GetDevice(parser.QualifiedName("nvidia.com", "pgpu", id))
		if device == nil {
			t.Fatalf("device id %s: not in the CDI files, which have %v", id, files.ListDevices())
		}
		for _, node := range device.ContainerEdits.DeviceNodes {
			number, _ := strings.CutPrefix(node.Path, "/dev/vfio/devices/vfio")
			for _, gpu := range board.GPUs {
				if fmt.Sprint(*gpu.VFIO) == number {
					addresses = append(addresses, gpu.Address)
				}
			}
		}
	}
	if len(addresses) != len(ids) {
		t.Errorf("device ids %v lead to the GPUs %v", ids, addresses)
	}
	slices.Sort(addresses)
	return addresses
}
