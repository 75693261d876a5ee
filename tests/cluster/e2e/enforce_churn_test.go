// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"maps"
	"slices"
	"testing"

	"switchyard/tests/cluster/lab"
)

// Pods come and go in enforce, agent and kubelet end in between, and some of the pods' processes are
// seen to have their GPUs open. After every step Fabric Manager is asked what is active: each pod's
// partition, and else only what pods had that have gone.
func TestOneTenantOneActivePartitionWhateverEnds(t *testing.T) {
	r := newChurn(t, map[string]string{
		"log.format": "json", "fabric.mode": enforce, "tenancy.grace": "1s",
		// However long this machine takes to end a container: the next pod waits for it.
		"allocate.wait": "20s",
	})
	r.build = holdingContainer
	r.c.Admitted(lab.Daemon("daemon"))
	ends := map[string]int{}
	r.run(podsOf(t, 500, 100), func() {
		r.expectFabric()
		r.showSome()
		if what := r.endSomething(); what != "" {
			ends[what]++
			r.expectFabric()
		}
	})
	// A kubelet that starts knows nothing of a pod whose containers its predecessor was just ending. It
	// ends them between two admissions, so the one that waits for them waits in vain.
	if r.refusedAsHeld > ends["kubelet"] {
		t.Errorf("%d pods were refused because of processes of pods that had gone, and kubelet ended %d times",
			r.refusedAsHeld, ends["kubelet"])
	}
	deletePods(r.c, slices.Collect(maps.Keys(r.live))...)
	r.c.WaitBoard("nothing to be active", func(board lab.Board) bool { return len(board.Active()) == 0 })
	t.Logf("%d pods, %d of them admitted, %d refused as held; ended: %v", r.created, r.onPartition,
		r.refusedAsHeld, ends)
}

// expectFabric: one active partition for each pod, and no other but of pods that have gone, whose
// release is due.
func (r *churn) expectFabric() {
	r.t.Helper()
	board := r.c.Board()
	explained := map[int]string{}
	for name, pod := range r.live {
		partition, is := board.PartitionOf(pod.devices)
		if !is || !partition.Active {
			r.t.Errorf("pod %s has %v; a partition: %v, active: %v", name, pod.devices, is, partition.Active)
		}
		explained[partition.ID] = name
	}
	for name, devices := range r.ended {
		partition, _ := board.PartitionOf(devices)
		if !partition.Active {
			delete(r.ended, name) // it must not be active again
		} else if explained[partition.ID] == "" {
			explained[partition.ID] = name
		}
	}
	for _, partition := range board.Active() {
		if explained[partition.ID] == "" {
			r.t.Errorf("partition %d (modules %v) is active, and no pod explains it", partition.ID,
				partition.Modules)
		}
	}
}

// showSome lets the agent see the processes of some pods, and of others not.
func (r *churn) showSome() {
	for _, name := range slices.Sorted(maps.Keys(r.live)) {
		if r.random.IntN(4) == 0 {
			showProcess(r.t, r.c, name)
		}
	}
}

// endSomething ends the agent or kubelet, not often, and returns which, when it is back.
func (r *churn) endSomething() (what string) {
	mark := r.c.Kubelet.Log().Mark()
	switch r.random.IntN(24) {
	case 0:
		what = "agent"
		r.c.Agent.Kill()
		r.c.Agent.Start()
	case 1:
		what = "agent"
		r.c.Agent.Restart()
	case 2:
		what = "kubelet"
		r.c.Kubelet.Kill()
		r.c.Kubelet.Start()
	default:
		return ""
	}
	kubeletIsBack(r.c, mark, slices.Collect(maps.Keys(r.live))...)
	return what
}
