// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"switchyard/tests/cluster/components"
	"switchyard/tests/cluster/lab"
)

// deploy/switchyard.yaml as a user applies it, with the image of scripts/image: the agent as a pod with
// the rights of that manifest, upgraded by a rolling update, and taken away again.
func TestTheAgentAsADaemonSet(t *testing.T) {
	c := lab.Start(t, lab.Options{NoAgent: true})
	importAgentImage(t, c)
	manifest := agentManifest(t, c)
	c.Kubectl("label", "node", c.Node().Name, "switchyard/agent=true")
	c.Kubectl("apply", "-f", manifest)
	rolledOut(c)
	c.WaitAllocatable(h100, 8)
	admitPair(t, c, "a")
	expectUsable(t, c.View("a", "vm"))
	before := held(c, "a")
	old := agentPod(t, c)

	mark := c.Kubelet.Log().Mark()
	c.Kubectl("-n", agentNamespace, "rollout", "restart", "daemonset/switchyard")
	rolledOut(c) // the new pod is ready, and the old one asked to end
	c.Kubectl("-n", agentNamespace, "wait", "--for=delete", "pod/"+old.Name, "--timeout=2m")
	kubeletHas(c, mark, h100, "8")
	successor := agentPod(t, c)
	// Ready while it waits, so that the old pod was ended only then.
	log := c.Kubectl("-n", agentNamespace, "logs", successor.Name)
	waited, taken := strings.Index(log, `"event":"lock_waiting"`), strings.Index(log, `"event":"lock_taken"`)
	if waited < 0 || taken < waited || !strings.Contains(log[:taken], old.Name) {
		t.Errorf("the new pod did not wait for %s and take over:\n%s", old.Name, log)
	}
	c.WaitAllocatable(h100, 8)
	expectUntouched(t, c, before)
	admitPair(t, c, "b")
	before = held(c, "a", "b")

	c.Kubectl("delete", "-f", manifest)
	c.WaitAllocatable(h100, 0)
	expectUntouched(t, c, before)
	for _, pattern := range []string{"kubelet/device-plugins/switchyard-*", "socket/*"} {
		if left, err := filepath.Glob(c.Path(pattern)); err != nil || len(left) != 0 {
			t.Errorf("left behind: %v (%v)", left, err)
		}
	}
	if left := c.Exec("sh", "-c", "grep -lxE 'switchyard(-fm|-wait)?' /proc/[0-9]*/comm || true"); left != "" {
		t.Errorf("processes left behind: %s", left)
	}
}

const (
	agentNamespace = "switchyard"
	agentImage     = "localhost/switchyard:test"
)

func importAgentImage(t *testing.T, c *lab.Cluster) {
	t.Helper()
	// Not the build that SOURCE would make, but the one under test.
	command := exec.Command(fromRoot(t, "scripts/image"), "--tag", agentImage,
		"--build", filepath.Dir(c.SwitchyardBin()), "--output", c.Path("switchyard.tar"))
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("scripts/image: %v\n%s", err, out)
	}
	c.Exec("ctr", "images", "import", lab.Inside("switchyard.tar"))
}

// agentManifest is the repository's, for this node.
func agentManifest(t *testing.T, c *lab.Cluster) string {
	t.Helper()
	text, err := os.ReadFile(fromRoot(t, "deploy/switchyard.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return manifestForNode(t, c, string(text), "switchyard.yaml")
}

// manifestForNode has the image, and the simulated node's /sys and libnvfm in place of the machine's, and
// what more a test changes. All else is what a user applies.
func manifestForNode(t *testing.T, c *lab.Cluster, manifest, name string, more ...[2]string) string {
	t.Helper()
	for _, change := range append([][2]string{
		{"image: localhost/switchyard:0.1.0\n", "image: " + agentImage + "\n"},
		{"hostPath: {path: /sys,", "hostPath: {path: " + lab.Inside("sim/root/sys") + ","},
		{"hostPath: {path: /usr/lib/x86_64-linux-gnu,", "hostPath: {path: " + lab.Inside("sim/lib") + ","},
	}, more...) {
		if strings.Count(manifest, change[0]) != 1 {
			t.Fatalf("deploy/switchyard.yaml: %q is not there once", change[0])
		}
		manifest = strings.Replace(manifest, change[0], change[1], 1)
	}
	if err := os.WriteFile(c.Path(name), []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	return lab.Inside(name)
}

func fromRoot(t *testing.T, path string) string {
	t.Helper()
	source, err := components.SourceFolder()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(source, "../..", path)
}

// rolledOut returns when every pod is of the present template, and ready.
func rolledOut(c *lab.Cluster) {
	c.Kubectl("-n", agentNamespace, "rollout", "status", "daemonset/switchyard")
}

// agentPod is the only one.
func agentPod(t *testing.T, c *lab.Cluster) corev1.Pod {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), lab.Patience)
	defer cancel()
	pods, err := c.Client.CoreV1().Pods(agentNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(pods.Items) != 1 {
		t.Fatalf("%d pods of the agent: %v", len(pods.Items), pods.Items)
	}
	return pods.Items[0]
}
