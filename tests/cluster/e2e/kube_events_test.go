// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"switchyard/tests/cluster/lab"
)

// The agent's account has the manifest's role, and nothing else: what it may write is there for
// whoever looks at the node, or at the pod that has the devices.
func TestRefusalsAndLostPartitionsAreKubernetesEvents(t *testing.T) {
	c := lab.Start(t, lab.Options{AgentConfig: map[string]string{
		"fabric.mode": "enforce", "fabric.probeInterval": "1s", "log.level": "debug",
		"paths.serviceAccount": lab.Inside("account"),
	}})
	c.WaitAllocatable(h100, 8)
	c.Agent.Stop() // it had no account, and ran
	giveAccount(t, c)
	node := c.Node().Name
	c.Agent.Env = []string{
		"KUBERNETES_SERVICE_HOST=10.96.0.1", "KUBERNETES_SERVICE_PORT=443", "NODE_NAME=" + node,
	}
	mark := c.Kubelet.Log().Mark()
	c.Agent.Start()
	kubeletHas(c, mark, h100, "8")

	refused := c.Refused(lab.Pod("three", lab.Container("vm", h100, 3)))
	event := c.WaitEvent("default", "AllocateFailed")
	expectNodeEvent(t, event, node)
	for _, message := range []string{event.Message, refused.Status.Message} {
		if !strings.Contains(message, "are no partition") {
			t.Errorf("not the reason: %s", message)
		}
	}
	expectDescribed(t, c, "node", node, "AllocateFailed")

	pod := c.Admitted(lab.Pod("vm", lab.Container("vm", h100, 2)))
	c.Agent.WaitLog("event=owner_learned")
	c.Sim("fault", "fm", "restart", "--cold")
	lost := c.WaitEvent(pod.Namespace, "PartitionLost")
	if at := lost.InvolvedObject; at.Kind != "Pod" || at.Name != pod.Name || at.UID != pod.UID {
		t.Errorf("the lost partition's event is on %v, want pod %s (%s)", at, pod.Name, pod.UID)
	}
	expectDescribed(t, c, "pod", pod.Name, "PartitionLost")
}

// deploy/switchyard.yaml gives the pod all that it takes: token, role, and the node's name.
func TestTheAgentsPodWritesKubernetesEvents(t *testing.T) {
	c := lab.Start(t, lab.Options{NoAgent: true})
	importAgentImage(t, c)
	manifest := agentManifest(t, c)
	node := c.Node().Name
	c.Kubectl("label", "node", node, "switchyard/agent=true")
	c.Kubectl("apply", "-f", manifest)
	rolledOut(c)
	c.WaitAllocatable(h100, 8)
	c.Admitted(lab.Pod("three", lab.Container("vm", h100, 3)))
	expectNodeEvent(t, c.WaitEvent("default", "NoPartition"), node)
	found := c.Kubectl("get", "events", "-A", "--field-selector", "source=switchyard")
	if !strings.Contains(found, "NoPartition") {
		t.Errorf("kubectl get events --field-selector source=switchyard:\n%s", found)
	}
	// It may find fault with the simulated node, and fail.
	doctor := c.Exec("sh", "-c", c.Program("kubectl")+" -n "+agentNamespace+" exec "+
		agentPod(t, c).Name+" -- /usr/bin/switchyard doctor --config /etc/switchyard/config.yaml || true")
	if !strings.Contains(doctor, "answers, Kubernetes v1.") {
		t.Errorf("doctor does not reach the API server:\n%s", doctor)
	}
}

// giveAccount puts a token of the manifest's service account where kubelet would put it in a pod.
func giveAccount(t *testing.T, c *lab.Cluster) {
	t.Helper()
	c.Kubectl("apply", "-f", agentManifest(t, c)) // no node has the label: no pod
	token := c.Kubectl("-n", agentNamespace, "create", "token", "switchyard")
	authority, err := os.ReadFile(c.Path("pki/ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(c.Path("account"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"token": token, "ca.crt": string(authority)} {
		if err := os.WriteFile(c.Path("account", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func expectNodeEvent(t *testing.T, event *corev1.Event, node string) {
	t.Helper()
	at := event.InvolvedObject
	if at.Kind != "Node" || at.Name != node || event.Type != corev1.EventTypeWarning ||
		event.Source.Component != "switchyard" {
		t.Errorf("%s: %s of %v on %v, want a warning of switchyard on node %s",
			event.Reason, event.Type, event.Source, at, node)
	}
}

func expectDescribed(t *testing.T, c *lab.Cluster, kind, name, reason string) {
	t.Helper()
	if text := c.Kubectl("describe", kind, name); !strings.Contains(text, reason) {
		t.Errorf("kubectl describe %s %s does not show %s:\n%s", kind, name, reason, text)
	}
}
