// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"switchyard/tests/cluster/lab"
)

// The node fails and starts again. kubelet starts the containers of its checkpoint, without a new
// Allocate: their partition is active again before they run, or they never run.
func TestAPodComesBackFromARebootWithItsPartitionActive(t *testing.T) {
	c := lab.Start(t, lab.Options{AgentConfig: map[string]string{
		"log.format": "json", "fabric.mode": enforce, "tenancy.grace": "15s",
	}})
	c.WaitAllocatable(h100, 8)
	c.Admitted(lab.Daemon("daemon"))
	pod := lab.Pod("vm", lab.Container("vm", h100, 2))
	pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
	c.Admitted(pod)
	before := held(c, "vm")["vm"]
	devices := before.devices
	partition, is := c.Board().PartitionOf(devices)
	if !is || !partition.Active {
		t.Fatalf("%v: a partition: %v, active: %v", devices, is, partition.Active)
	}

	mark := c.Agent.Log().Mark()
	powerFails(c, "8", "--same-numbers")
	c.WaitPod("vm", "run in a new container", func(pod *corev1.Pod) bool {
		status := pod.Status.ContainerStatuses
		return finished(pod) || len(status) == 1 && status[0].State.Running != nil &&
			status[0].ContainerID != before.container
	})
	c.WaitKnown("vm")
	after := held(c, "vm")["vm"]
	if !slices.Equal(after.devices, devices) {
		t.Errorf("pod vm had %v and has %v", devices, after.devices)
	}
	if active := c.Board().Active(); len(active) != 1 || active[0].ID != partition.ID {
		t.Errorf("active are %v, want only partition %d", active, partition.ID)
	}
	if again := eventsSince(t, c, mark, "reactivated", "allocate"); len(again) != 1 ||
		again[0]["event"] != "reactivated" {
		t.Errorf("events %v, want one activation and no allocation", again)
	}

	// Now each number is another GPU's: the container's nodes would be somebody else's GPUs.
	mark = c.Agent.Log().Mark()
	powerFails(c, "") // its own two, and those that have their numbers now, are not
	rejected := c.WaitPod("vm", "fail", func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodFailed })
	t.Logf("pod vm: %s: %s", rejected.Status.Reason, rejected.Status.Message)
	if !strings.Contains(rejected.Status.Message, "previously allocated devices are no longer healthy") {
		t.Errorf("message %q", rejected.Status.Message)
	}
	said := map[string]bool{}
	for _, e := range eventsSince(t, c, mark, "device_unhealthy") {
		if strings.Contains(e["msg"], "was granted with other device nodes than it has now") {
			said[e["pci"]] = true
		}
	}
	if !slices.Equal(slices.Sorted(maps.Keys(said)), devices) {
		t.Errorf("the log says of %v that their nodes are others now, want it of %v", said, devices)
	}
	if active := c.Board().Active(); len(active) != 0 {
		t.Errorf("active are %v, and no pod runs", active)
	}
	// When kubelet has not had it for the grace time, the GPUs are there for the next.
	c.WaitAllocatable(h100, 8)
	c.Admitted(lab.Pod("next", lab.Container("vm", h100, 8)))
	expectActive(t, c, "next")
}

// powerFails returns when agent and kubelet are up again and kubelet has heard of the devices (`healthy`
// of the eight, if that is said), and then of its pods. In another order it rejects those that have devices, whatever the agent
// does (kubernetes: a plugin that is not registered when kubelet admits a pod again).
func powerFails(c *lab.Cluster, healthy string, reboot ...string) {
	c.PowerFails(reboot...)
	c.APIServer.Pause()
	mark := c.Kubelet.Log().Mark()
	c.Agent.Start()
	c.Kubelet.Start()
	c.Kubelet.WaitLogAfter(mark, `"Processed device updates for resource" resourceName="`+h100+
		`" totalCount=8 healthyCount=`+healthy)
	c.APIServer.Resume()
}
