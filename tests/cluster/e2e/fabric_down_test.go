// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	"switchyard/tests/cluster/lab"
)

// Fabric Manager goes away, and so does the agent's memory of it but for what is on disk: pods go on
// landing on the partitions of the table that was read.
func TestPodsComeAndGoWhileFabricManagerIsDown(t *testing.T) {
	c := lab.Start(t, lab.Options{
		AgentConfig: map[string]string{"log.format": "json", "fabric.probeInterval": "1s"},
	})
	c.WaitAllocatable(h100, 8)
	c.Agent.WaitLog("fabric_up")
	now := newPlacement(c.Board())
	add := func(pod string, size int) {
		t.Helper()
		c.Admitted(lab.Pod(pod, lab.Container("vm", h100, int64(size))))
		now.put(t, pod, size, c.Devices(pod)["vm"])
	}
	remove := func(pod string) {
		t.Helper()
		c.DeletePod(pod)
		now.remove(pod)
	}
	add("before", 2)

	mark := c.Agent.Log().Mark()
	c.Sim("fault", "fm", "down")
	c.Agent.WaitLogAfter(mark, "fabric_down")
	add("quad", 4)
	add("pair", 2)
	remove("before")
	add("another-pair", 2)
	remove("quad")
	remove("pair")

	c.Agent.Stop()
	c.WaitAllocatable(h100, 0) // else eight could still be the former agent's
	c.Agent.Start()
	c.Agent.WaitLog("fabric_down")
	c.WaitAllocatable(h100, 8)
	add("quad-after-restart", 4)
	add("single", 1)
	if up := eventsSince(t, c, mark, "fabric_up"); len(up) != 0 {
		t.Errorf("the agent heard of Fabric Manager meanwhile: %v", up)
	}

	mark = c.Agent.Log().Mark()
	c.Sim("fault", "fm", "up")
	c.Agent.WaitLogAfter(mark, "fabric_up")
	remove("another-pair")
	add("last", 2)
	if failed := eventsSince(t, c, 0, "allocate_failed"); len(failed) != 0 {
		t.Errorf("refused: %v", failed)
	}
}
