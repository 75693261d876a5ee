// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"switchyard/tests/cluster/lab"
)

// deploy/switchyard.yaml for enforce, as docs/deploy.md makes it: with its rights the agent sees who has
// a GPU open and releases a partition. Without `privileged` it may not ask the kernel whether a group is
// busy, and then takes nothing for free.
func TestTheAgentAsADaemonSetInEnforce(t *testing.T) {
	c := lab.Start(t, lab.Options{NoAgent: true})
	importAgentImage(t, c)
	manifest := manifestForEnforce(t)
	changes := [][2]string{
		{"hostPath: {path: /proc,", "hostPath: {path: " + lab.Inside("sim/root/proc") + ","},
		{"hostPath: {path: /dev,", "hostPath: {path: " + lab.Inside("sim/root/dev") + ","},
		{"    paths:\n", "    tenancy: {grace: 1s}\n    allocate: {wait: 1s}\n    paths:\n"},
	}
	c.Kubectl("label", "node", c.Node().Name, "switchyard/agent=true")
	c.Kubectl("apply", "-f", manifestForNode(t, c, manifest, "weak.yaml",
		append(changes, [2]string{"privileged: true", "privileged: false"})...))
	rolledOut(c)
	c.WaitAllocatable(h100, 8)
	refused := c.Refused(lab.Pod("early", lab.Container("vm", h100, 2)))
	for _, want := range []string{"Operation not permitted", "only if it is privileged"} {
		if !strings.Contains(refused.Status.Message, want) {
			t.Errorf("pod early: %q, want it to say %q", refused.Status.Message, want)
		}
	}
	if active := c.Board().Active(); len(active) != 0 {
		t.Errorf("active are %v, of no pod", active)
	}
	c.DeletePod("early")
	weak := agentPod(t, c)

	mark := c.Kubelet.Log().Mark()
	c.Kubectl("apply", "-f", manifestForNode(t, c, manifest, "enforce.yaml", changes...))
	rolledOut(c)
	c.Kubectl("-n", agentNamespace, "wait", "--for=delete", "pod/"+weak.Name, "--timeout=2m")
	kubeletHas(c, mark, h100, "8")
	c.WaitAllocatable(h100, 8)
	c.Admitted(lab.Pod("vm", holdingContainer(h100, 2)))
	expectActive(t, c, "vm")
	pid := showProcess(t, c, "vm")
	held := c.Kubectl("-n", agentNamespace, "exec", agentPod(t, c).Name, "--", "/usr/bin/switchyard", "holders",
		"--config", "/etc/switchyard/config.yaml")
	if !strings.Contains(held, pid) {
		t.Errorf("process %s has the GPUs open, and switchyard holders in the pod says:\n%s", pid, held)
	}
	c.DeletePod("vm")
	c.WaitBoard("the release", func(board lab.Board) bool { return len(board.Active()) == 0 })
}

// manifestForEnforce is made by the very command of docs/deploy.md.
func manifestForEnforce(t *testing.T) string {
	t.Helper()
	docs, err := os.ReadFile(fromRoot(t, "docs/deploy.md"))
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^    (sed .* deploy/switchyard\.yaml) > enforce\.yaml$`).FindSubmatch(docs)
	if line == nil {
		t.Fatal("docs/deploy.md: no command that makes enforce.yaml")
	}
	command := exec.Command("sh", "-c", string(line[1]))
	command.Dir = fromRoot(t, ".")
	made, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %v", line[1], err)
	}
	return string(made)
}
