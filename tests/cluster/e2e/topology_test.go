// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"switchyard/tests/cluster/lab"
)

// Modules 1 to 4 are on NUMA node 0, 5 to 8 on node 1. kubelet offers the devices of one node, and
// the agent has to make a partition of those.
func TestTopologyManagerPolicies(t *testing.T) {
	for _, policy := range []string{"single-numa-node", "restricted"} {
		t.Run(policy, func(t *testing.T) {
			c := lab.Start(t, lab.Options{
				AgentConfig: jsonLog, KubeletConfig: "topologyManagerPolicy: " + policy,
			})
			c.WaitAllocatable(h100, 8)
			wholeBoard(t, c, policy)

			mark := c.Agent.Log().Mark()
			now := newPlacement(c.Board())
			for i, size := range []int{1, 2, 2, 1, 2} {
				name := fmt.Sprintf("pod%d-of%d", i, size)
				c.Admitted(lab.Pod(name, lab.Container("vm", h100, int64(size))))
				devices := c.Devices(name)["vm"]
				now.put(t, name, size, devices)
				expectOneNode(t, now.board, name, devices)
			}
			expectOfferOfOneNode(t, now.board, eventsSince(t, c, mark, "preferred"))
		})
	}
}

// Eight GPUs need both nodes.
func wholeBoard(t *testing.T, c *lab.Cluster, policy string) {
	pod := lab.Pod("whole", lab.Container("vm", h100, 8))
	if policy == "restricted" {
		c.Admitted(pod)
		newPlacement(c.Board()).put(t, "whole", 8, c.Devices("whole")["vm"])
	} else if got := c.Refused(pod); got.Status.Reason != "TopologyAffinityError" {
		t.Errorf("reason %s (%s), want TopologyAffinityError", got.Status.Reason, got.Status.Message)
	}
	deletePods(c, "whole")
}

func nodesOf(board lab.Board, addresses []string) (nodes []int) {
	for _, address := range addresses {
		gpu, _ := board.ByAddress(address)
		nodes = append(nodes, gpu.NUMANode)
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

func expectOneNode(t *testing.T, board lab.Board, pod string, addresses []string) {
	t.Helper()
	if nodes := nodesOf(board, addresses); len(nodes) != 1 || nodes[0] < 0 {
		t.Errorf("pod %s: %v are on nodes %v, want one", pod, addresses, nodes)
	}
}

// Else the tests above could pass without a topology manager.
func expectOfferOfOneNode(t *testing.T, board lab.Board, asked []event) {
	t.Helper()
	if len(asked) == 0 {
		t.Error("kubelet never asked which devices to take")
	}
	for _, e := range asked {
		if nodes := nodesOf(board, e.list("available")); len(nodes) != 1 {
			t.Errorf("kubelet offered %s, on nodes %v, want those of one node", e["available"], nodes)
		}
	}
}

// Where a node holds no more than is asked for, kubelet takes that without a question, even if
// another node has a whole partition: the agent can only say so.
func TestWhatIsLeftOfANUMANodeIsTakenUnasked(t *testing.T) {
	// Pairs are 1 3, 2 4, 5 7 and 6 8.
	nodes := map[int]int{1: 0, 3: 0, 2: 0, 5: 0, 6: 1, 8: 1, 4: 1, 7: 1}
	c := lab.Start(t, lab.Options{
		Board: boardWithNodes(t, nodes), AgentConfig: jsonLog,
		KubeletConfig: "topologyManagerPolicy: restricted",
	})
	c.WaitAllocatable(h100, 8)
	board := c.Board()
	now := newPlacement(board)
	c.Admitted(lab.Pod("asked", lab.Container("vm", h100, 2)))
	first := c.Devices("asked")["vm"]
	now.put(t, "asked", 2, first)
	expectOneNode(t, board, "asked", first)

	mark := c.Agent.Log().Mark()
	c.Admitted(lab.Pod("unasked", lab.Container("vm", h100, 2)))
	second := c.Devices("unasked")["vm"]
	if !slices.Equal(nodesOf(board, first), nodesOf(board, second)) {
		t.Fatalf("kubelet took %v first and then %v: no more the lowest node with room", first, second)
	}
	if asked := eventsSince(t, c, mark, "preferred"); len(asked) != 0 {
		t.Errorf("kubelet asked: %v", asked)
	}
	if _, possible := partitionIn(board, now.free(), 2); !possible {
		t.Error("the other node has no pair: this test shows nothing")
	}
	if warned := eventsSince(t, c, mark, "no_partition"); len(warned) != 1 {
		t.Errorf("warnings %v, want one about %v", warned, second)
	}
}

// boardWithNodes is the hgx-h100 with modules on other NUMA nodes.
func boardWithNodes(t *testing.T, nodes map[int]int) string {
	t.Helper()
	text, err := os.ReadFile("../../../sim/boards/hgx-h100.json")
	if err != nil {
		t.Fatal(err)
	}
	var board map[string]any
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	var devices []map[string]any
	for module := 1; module <= len(nodes); module++ {
		devices = append(devices, map[string]any{
			"module": module, "numaNode": nodes[module], "deviceId": "0x2330",
			"address": fmt.Sprintf("0000:%02x:00.0", 0x10*module),
		})
	}
	board["devices"] = devices
	if text, err = json.Marshal(board); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "board.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
