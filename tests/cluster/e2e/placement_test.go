// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"maps"
	"slices"
	"testing"

	"switchyard/tests/cluster/lab"
)

// placement is who has which GPUs, by PCI address, held against the board's partition table.
type placement struct {
	board lab.Board
	owner map[string]string
}

func newPlacement(board lab.Board) *placement {
	return &placement{board: board, owner: map[string]string{}}
}

// partitionIn is a partition of `size` GPUs that lies within `free`, if there is one.
func partitionIn(board lab.Board, free []string, size int) (lab.Partition, bool) {
	var modules []int
	for _, address := range free {
		if gpu, found := board.ByAddress(address); found && gpu.Present {
			modules = append(modules, gpu.Module)
		}
	}
	for _, partition := range board.FM.Partitions {
		outside := func(module int) bool { return !slices.Contains(modules, module) }
		if len(partition.Modules) == size && !slices.ContainsFunc(partition.Modules, outside) {
			return partition, true
		}
	}
	return lab.Partition{}, false
}

func (p *placement) free() (addresses []string) {
	for _, gpu := range p.board.GPUs {
		if _, taken := p.owner[gpu.Address]; !taken && gpu.Present {
			addresses = append(addresses, gpu.Address)
		}
	}
	return addresses
}

// put records a pod's GPUs: as many as it asked for, nobody else's, and exactly one partition if one
// of that size was free.
func (p *placement) put(t *testing.T, pod string, size int, addresses []string) {
	t.Helper()
	if len(addresses) != size {
		t.Errorf("pod %s has %v, want %d GPUs", pod, addresses, size)
	}
	free := p.free()
	for _, address := range addresses {
		if other, taken := p.owner[address]; taken {
			t.Errorf("pod %s has %s, which pod %s has", pod, address, other)
		} else if !slices.Contains(free, address) {
			t.Errorf("pod %s has %s, which is not there", pod, address)
		}
		p.owner[address] = pod
	}
	if _, is := p.board.PartitionOf(addresses); is {
		return
	}
	if could, possible := partitionIn(p.board, free, size); possible {
		t.Errorf("pod %s has %v, which is no partition, and partition %d (modules %v) was free",
			pod, addresses, could.ID, could.Modules)
	}
}

func (p *placement) remove(pod string) {
	maps.DeleteFunc(p.owner, func(_, owner string) bool { return owner == pod })
}
