// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"switchyard/tests/cluster/lab"
)

// What becomes of a deleted pod's partition, by what the simulated Fabric Manager says: it is released
// after the grace time; but not while a process has a GPU of it open, whatever kubelet says, and the pod
// that kubelet gives that GPU to is told who has it. With the last process it is released.
func TestAPartitionIsReleasedWhenItsPodAndItsHoldersHaveGone(t *testing.T) {
	c := lab.Start(t, lab.Options{AgentConfig: map[string]string{
		"log.format": "json", "log.level": "debug", "fabric.mode": enforce, "tenancy.grace": "1s",
	}})
	c.WaitAllocatable(h100, 8)
	c.Admitted(lab.Pod("plain", lab.Container("vm", h100, 4)))
	c.Admitted(lab.Pod("stuck", holdingContainer(h100, 2)))
	pid := showProcess(t, c, "stuck")
	for _, pod := range []string{"plain", "stuck"} {
		expectActive(t, c, pod)
		c.Agent.WaitLog(`"owner":"pod default/` + pod + `"`)
	}
	board := c.Board()
	plain, _ := board.PartitionOf(c.Devices("plain")["vm"])
	stuck, _ := board.PartitionOf(c.Devices("stuck")["vm"])
	if active := board.Active(); len(active) != 2 {
		t.Errorf("active are %v, want those of two pods", active)
	}

	mark := c.Agent.Log().Mark()
	c.DeletePod("plain")
	c.Containerd.Kill() // nobody ends containers now; kubelet goes on for 30 s
	c.Kubectl("delete", "pod", "stuck", "--force", "--grace-period=0", "--wait=false")
	c.CreatePod(lab.Pod("next", lab.Container("vm", h100, 8)))
	refused := admittedOrRejected(c, "next")
	described := strings.Join(strings.Fields(c.Kubectl("describe", "pod", "next")), " ")
	for _, want := range []string{
		"Status: Failed", "Reason: UnexpectedAdmissionError", "of pod default/stuck) are still held open",
		"PID " + pid + " (sleep)", "end that process",
	} {
		if !strings.Contains(described, want) {
			t.Errorf("kubectl describe does not say %q: %s", want, described)
		}
	}
	t.Logf("pod next: %s: %s", refused.Status.Reason, refused.Status.Message)
	expectUnknownToKubelet(t, c, "stuck")

	// In one pass of the agent's: nobody has the one, and a process has the other.
	waitReleased(t, c, mark, plain)
	if active := c.Board().Active(); len(active) != 1 || active[0].ID != stuck.ID {
		t.Errorf("active are %v, want only partition %d, which is held", active, stuck.ID)
	}
	if plan := c.Exec("switchyard", "reconcile", "--dry-run", "--config", lab.Inside("agent.yaml")); !strings.Contains(plan,
		"kubelet does not list it, but it may be held open") {
		t.Errorf("what the agent would do next:\n%s", plan)
	}
	c.Agent.WaitLogAfter(mark, `"event":"tenancy_orphaned"`)

	mark = c.Agent.Log().Mark()
	c.Containerd.Start()
	waitReleased(t, c, mark, stuck)
	if active := c.Board().Active(); len(active) != 0 {
		t.Errorf("active are %v", active)
	}
}

// waitReleased waits for the agent to say so; Fabric Manager is asked afterwards.
func waitReleased(t *testing.T, c *lab.Cluster, mark int64, partition lab.Partition) {
	t.Helper()
	c.Agent.WaitLogAfter(mark, `"event":"released"`)
	released := eventsSince(t, c, mark, "released")
	want := "neither kubelet nor a process has had it for longer than the grace time"
	if len(released) != 1 || released[0]["partition"] != fmt.Sprint(partition.ID) || released[0]["msg"] != want {
		t.Errorf("released: %v, want only partition %d because %s", released, partition.ID, want)
	}
	if slices.ContainsFunc(c.Board().Active(), func(p lab.Partition) bool { return p.ID == partition.ID }) {
		t.Errorf("partition %d is still active", partition.ID)
	}
}
