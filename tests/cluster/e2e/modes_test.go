// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"switchyard/tests/cluster/lab"
)

// What a GPU means to a pod depends on the agent's fabric.mode. "off" is none of these: it knows no
// partitions.
const (
	advise  = "advise" // a cluster's, unless it is told another
	enforce = "enforce"
)

// inEachMode runs a test on one cluster: with the agent that it has, in advise, and then in enforce.
func inEachMode(t *testing.T, c *lab.Cluster, run func(t *testing.T, mode string)) {
	t.Helper()
	for _, mode := range []string{advise, enforce} {
		t.Run(mode, func(t *testing.T) {
			if mode != advise {
				useMode(c, mode)
			}
			run(t, mode)
		})
		if t.Failed() {
			return // what it left would only confuse the next
		}
	}
}

// useMode starts the agent anew, with another fabric.mode. No pod may have GPUs.
func useMode(c *lab.Cluster, mode string) {
	c.ConfigureAgent(map[string]string{"fabric.mode": mode})
	mark := c.Kubelet.Log().Mark()
	c.Agent.Restart()
	kubeletHas(c, mark, h100, "8")
	c.WaitAllocatable(h100, 8)
}

// expectActive: all that a pod has of the agent is, container by container, an active partition.
func expectActive(t *testing.T, c *lab.Cluster, pod string) {
	t.Helper()
	board := c.Board()
	for container, devices := range c.Devices(pod) {
		if _, ours := board.ByAddress(devices[0]); !ours {
			continue
		}
		if partition, is := board.PartitionOf(devices); !is || !partition.Active {
			t.Errorf("pod %s, container %s has %v; a partition: %v, active: %v; active are %v", pod,
				container, devices, is, partition.Active, board.Active())
		}
	}
}

// admittedOrRejected returns a pod when kubelet has decided on it: Running, or Failed.
func admittedOrRejected(c *lab.Cluster, name string) *corev1.Pod {
	return c.WaitPod(name, "be admitted or rejected", func(pod *corev1.Pod) bool {
		return runsNow(pod) || pod.Status.Phase == corev1.PodFailed
	})
}

// holdingContainer has its GPUs' nodes open, as a VM's launcher has, before it says what it sees.
func holdingContainer(resource string, count int64) corev1.Container {
	container := lab.Container("vm", resource, count)
	script := &container.Command[len(container.Command)-1]
	*script = `fd=3
for node in /dev/vfio/[0-9]*; do eval "exec $fd< $node"; fd=$((fd + 1)); done
` + *script
	return container
}

// showProcess puts a pod's process into the simulated node's /proc, where the agent looks for holders,
// and returns its number. Of a process that has ended nothing is seen there.
func showProcess(t *testing.T, c *lab.Cluster, pod string) string {
	t.Helper()
	_, id, _ := strings.Cut(c.WaitRunning(pod).Status.ContainerStatuses[0].ContainerID, "://")
	for line := range strings.Lines(c.Exec("ctr", "tasks", "list")) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == id {
			c.Exec("ln", "-sfn", "/proc/"+fields[1], lab.Inside("sim/root/proc", fields[1]))
			return fields[1]
		}
	}
	t.Fatalf("containerd has no task %s", id)
	return ""
}
