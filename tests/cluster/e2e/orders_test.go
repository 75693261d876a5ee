// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"testing"

	"switchyard/tests/cluster/lab"
)

// Eight GPUs are enough for these four in every order only if each early pod leaves the partitions
// of the later ones whole.
func TestOneOneTwoAndFourFitInEveryOrder(t *testing.T) {
	c := lab.Start(t, lab.Options{})
	c.WaitAllocatable(h100, 8)
	all := orders([]int{1, 1, 2, 4})
	if len(all) != 12 {
		t.Fatalf("%d orders, want 12: %v", len(all), all)
	}
	inEachMode(t, c, func(t *testing.T, mode string) {
		for number, order := range all {
			inOrder(t, c, mode, number, order)
		}
	})
}

// In enforce what an order activates is in the way of the next one, and gives way at once.
func inOrder(t *testing.T, c *lab.Cluster, mode string, number int, order []int) {
	t.Helper()
	now := newPlacement(c.Board())
	var names []string
	for i, size := range order {
		name := fmt.Sprintf("order%d-pod%d-of%d", number, i, size)
		names = append(names, name)
		c.CreatePod(lab.Pod(name, lab.Container("vm", h100, int64(size))))
		c.WaitAdmitted(name)
		devices := c.Devices(name)["vm"]
		now.put(t, name, size, devices)
		if _, is := now.board.PartitionOf(devices); !is {
			t.Errorf("order %v: pod %d has %v, which is no partition", order, i, devices)
		}
		if mode == enforce {
			expectActive(t, c, name)
		}
	}
	deletePods(c, names...)
}

// orders are the different permutations.
func orders(sizes []int) (all [][]int) {
	if len(sizes) == 0 {
		return [][]int{nil}
	}
	for i, first := range sizes {
		if slices.Contains(sizes[:i], first) {
			continue
		}
		for _, rest := range orders(slices.Delete(slices.Clone(sizes), i, i+1)) {
			all = append(all, append([]int{first}, rest...))
		}
	}
	return all
}
