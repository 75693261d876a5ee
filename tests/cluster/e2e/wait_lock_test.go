// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"switchyard/tests/cluster/lab"
)

// An upgrade: the new agent is started while the old one serves, and takes over when that one ends,
// be it asked to or killed.
func TestANewAgentWaitsForTheOldOneAndTakesOver(t *testing.T) {
	c := lab.Start(t, lab.Options{AgentConfig: jsonLog})
	c.WaitAllocatable(h100, 8)
	admitPair(t, c, "a")
	before := held(c, "a")

	serving := c.Agent
	for _, next := range []struct {
		name, duringWait, after string
		end                     func(*lab.Component)
	}{
		{"second", "b", "c", (*lab.Component).Stop},
		{"third", "", "d", (*lab.Component).Kill},
	} {
		sockets := agentSockets(t, c)
		// The process whose name is the program's; the helper of it has another.
		pid := filepath.Base(filepath.Dir(strings.TrimSpace(
			c.Exec("sh", "-c", "grep -lx switchyard /proc/[0-9]*/comm"))))
		waiting := c.Component(next.name, append(slices.Clone(c.Agent.Argv), "--wait-lock")...)
		waiting.Start()
		var line event
		if err := json.Unmarshal([]byte(waiting.WaitLog(`"event":"lock_waiting"`)), &line); err != nil {
			t.Fatal(err)
		}
		if holder := "process " + pid + " "; !strings.Contains(line["msg"], holder) {
			t.Errorf("%s says %q, want it to name the %s", next.name, line["msg"], holder)
		}
		if next.duringWait != "" {
			mark := serving.Log().Mark()
			admitPair(t, c, next.duringWait)
			serving.WaitLogAfter(mark, `"event":"allocate"`)
			before = held(c, "a", next.duringWait)
		}
		if now := agentSockets(t, c); !slices.Equal(now, sockets) {
			t.Errorf("with %s waiting, the sockets are %v; they were %v", next.name, now, sockets)
		}
		if said := waiting.Log().Lines(0, ""); len(said) != 1 {
			t.Errorf("%s did more than wait: %v", next.name, said)
		}

		mark := c.Kubelet.Log().Mark()
		next.end(serving)
		waiting.WaitLog(`"event":"lock_taken"`)
		kubeletHas(c, mark, h100, "8")
		c.WaitAllocatable(h100, 8)
		expectUntouched(t, c, before)
		admitPair(t, c, next.after)
		waiting.WaitLog(`"event":"allocate"`)
		serving = waiting
	}
	allEight(t, c)
	expectUntouched(t, c, before)
}

// agentSockets are those of any agent, each with its identity.
func agentSockets(t *testing.T, c *lab.Cluster) (all []string) {
	t.Helper()
	for _, pattern := range []string{"kubelet/device-plugins/switchyard-*", "socket/*"} {
		paths, err := filepath.Glob(c.Path(pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			status, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, path+" "+status.ModTime().String())
		}
	}
	if len(all) < 2 {
		t.Fatalf("sockets %v: this test looks at the wrong things", all)
	}
	return all
}
