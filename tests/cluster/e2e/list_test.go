// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"switchyard/tests/cluster/lab"
)

// kubernetes#137534, with a plugin of the test's own: what a PodResources List does to an admission
// whose Allocate is still running. kubelet forgets which devices that admission chose, but only if a
// pod has ended since the admission began. The simulated kubelet's InFlightTest says the same.
func TestAListDuringAllocateAfterAPodEndedLetsADeviceGoTwice(t *testing.T) {
	c := lab.Start(t, lab.Options{NoAgent: true})
	plugin := newScripted(t, c, "plugin.sock", "a", "b", "c", "d")
	wish, offered := make(chan string, 1), make(chan []string, 1)
	plugin.prefer = func(available []string, _ int) []string {
		offered <- available
		return []string{<-wish}
	}
	allocating, goOn := make(chan []string), make(chan struct{})
	plugin.allocate = func(ids []string) {
		allocating <- ids
		<-goOn
	}
	plugin.mustRegister(t)
	c.WaitAllocatable(thing, 4)

	// admit does `during` while the pod's Allocate runs, and returns what kubelet offered before.
	admit := func(t *testing.T, pod, device string, during func()) []string {
		t.Helper()
		wish <- device
		c.CreatePod(stubborn(pod))
		available := receive(t, offered, "GetPreferredAllocation for "+pod)
		receive(t, allocating, "Allocate for "+pod)
		during()
		goOn <- struct{}{}
		c.WaitRunning(pod)
		return available
	}
	for _, test := range []struct {
		name                  string
		podEnds, lists, twice bool
	}{
		{name: "a pod ends", podEnds: true},
		{name: "a List", lists: true},
		{name: "a pod ends and then a List", podEnds: true, lists: true, twice: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			admit(t, "ending", "a", func() {})
			beginEnding(c, "ending") // kubelet hears of nothing new during an admission
			admit(t, "waiting", "b", func() {
				if test.podEnds {
					endNow(c, "ending")
				}
				if test.lists {
					c.Holders(thing)
				}
			})
			available := admit(t, "next", "b", func() {})
			if slices.Contains(available, "b") != test.twice {
				t.Errorf("with b given to a pod, kubelet offered %v to the next; b among them: want %v",
					available, test.twice)
			}
			first, second := c.Devices("waiting")["vm"], c.Devices("next")["vm"]
			if slices.Equal(first, second) != test.twice {
				t.Errorf("PodResources: %v and %v; the same device: want %v", first, second, test.twice)
			}
			if !test.podEnds {
				endNow(c, "ending")
			}
			for _, pod := range []string{"waiting", "next"} {
				beginEnding(c, pod)
				endNow(c, pod)
			}
		})
	}
}

// stubborn is a pod that goes on after its deletion until endNow: its only process ignores SIGTERM, as
// the first of a PID namespace does.
func stubborn(name string) *corev1.Pod {
	pod := lab.Pod(name, lab.Container("vm", thing, 1))
	seconds := int64(3600)
	pod.Spec.TerminationGracePeriodSeconds = &seconds
	return pod
}

// beginEnding returns when kubelet has asked the pod's container to end.
func beginEnding(c *lab.Cluster, pod string) {
	mark := c.Kubelet.Log().Mark()
	c.BeginDelete(pod)
	c.Kubelet.WaitLogAfter(mark, `"Killing container with a grace period"`)
}

// endNow ends the process of such a pod, and returns when kubelet has seen it.
func endNow(c *lab.Cluster, pod string) {
	status := c.WaitRunning(pod).Status.ContainerStatuses[0]
	_, id, _ := strings.Cut(status.ContainerID, "://")
	c.Exec("ctr", "tasks", "kill", "--signal", "SIGKILL", id)
	c.DeletePod(pod)
}
