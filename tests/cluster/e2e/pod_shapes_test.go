// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"switchyard/tests/cluster/lab"
)

// Pods that are not one container with one partition. They share a cluster; each takes the whole board
// for itself.
func TestPodsOfOtherShapes(t *testing.T) {
	c := lab.Start(t, lab.Options{AgentConfig: jsonLog})
	c.WaitAllocatable(h100, 8)
	for _, shape := range []struct {
		name string
		run  func(*testing.T, *lab.Cluster)
	}{
		{"three GPUs", threeGPUs},
		{"two containers", twoContainers},
		{"main container takes more than its init container", growsAfterInit},
		{"main container takes what its init container had", sameAsInit},
		{"main container takes a part of what its init container had", shrinksAfterInit},
	} {
		t.Run(shape.name, func(t *testing.T) { shape.run(t, c) })
		if t.Failed() {
			break // what it left would only confuse the others
		}
	}
}

// No partition has three GPUs: the agent prefers none, says so, and in advise the pod runs.
func threeGPUs(t *testing.T, c *lab.Cluster) {
	mark := c.Agent.Log().Mark()
	c.Admitted(lab.Pod("three", lab.Container("vm", h100, 3)))
	devices := c.Devices("three")["vm"]
	now := newPlacement(c.Board())
	now.put(t, "three", 3, devices)
	expectView(t, c, "three", "vm", devices)

	events := eventsSince(t, c, mark, "preferred", "no_partition", "partition_inactive", "allocate")
	if len(events) != 3 {
		t.Fatalf("events %v, want preferred, no_partition and allocate", events)
	}
	for _, e := range events {
		switch e["event"] {
		case "preferred":
			if e["chosen"] != "" || !strings.Contains(e["msg"], "no partition has 3 GPUs") {
				t.Errorf("preferred %q because %q, want nothing, and why", e["chosen"], e["msg"])
			}
		case "no_partition":
			if got := slices.Sorted(slices.Values(e.list("pci"))); !slices.Equal(got, devices) {
				t.Errorf("the warning is about %v, the pod has %v", got, devices)
			}
			if e["level"] != "warn" && e["level"] != "warning" {
				t.Errorf("level %s, want a warning", e["level"])
			}
		case "allocate":
			if partition, has := e["partition"]; has {
				t.Errorf("the agent says that they are partition %s", partition)
			}
		default:
			t.Errorf("unexpected: %v", e)
		}
	}
	// The others still have what is left of the table.
	for _, pod := range []string{"after-a", "after-b"} {
		c.Admitted(lab.Pod(pod, lab.Container("vm", h100, 2)))
		now.put(t, pod, 2, c.Devices(pod)["vm"])
	}
	deletePods(c, "three", "after-a", "after-b")
}

// Each container has GPUs, environment and nodes of its own.
func twoContainers(t *testing.T, c *lab.Cluster) {
	c.Admitted(lab.Pod("twin", lab.Container("big", h100, 4), lab.Container("small", h100, 2)))
	devices := c.Devices("twin")
	now := newPlacement(c.Board())
	for name, size := range map[string]int{"big": 4, "small": 2} {
		now.put(t, name, size, devices[name])
		expectView(t, c, "twin", name, devices[name])
	}
	deletePods(c, "twin")
}

// kubelet gives the init container's GPUs on and asks for a set that includes them.
func growsAfterInit(t *testing.T, c *lab.Cluster) {
	mark := c.Agent.Log().Mark()
	c.Admitted(withInit("grows", 2, 4))
	first := viewAddresses(t, c, "grows", "init")
	devices := c.Devices("grows")["vm"]
	if listed, has := c.Devices("grows")["init"]; has {
		t.Errorf("PodResources lists %v for the init container", listed)
	}
	for _, pair := range [][]string{first, devices} {
		if _, is := c.Board().PartitionOf(pair); !is {
			t.Errorf("%v is no partition", pair)
		}
	}
	if without(first, devices) != nil {
		t.Errorf("the init container had %v, the main container has %v: not all of them", first, devices)
	}
	expectView(t, c, "grows", "vm", devices)
	asked := eventsSince(t, c, mark, "preferred")
	if len(asked) != 2 {
		t.Fatalf("kubelet asked %v, want once for each container", asked)
	}
	if got := slices.Sorted(slices.Values(asked[1].list("must_include"))); !slices.Equal(got, first) {
		t.Errorf("must_include %v, want the init container's %v", got, first)
	}
	deletePods(c, "grows")
}

func sameAsInit(t *testing.T, c *lab.Cluster) {
	mark := c.Agent.Log().Mark()
	c.Admitted(withInit("same", 2, 2))
	devices := c.Devices("same")["vm"]
	if first := viewAddresses(t, c, "same", "init"); !slices.Equal(first, devices) {
		t.Errorf("the init container had %v, the main container has %v", first, devices)
	}
	if _, is := c.Board().PartitionOf(devices); !is {
		t.Errorf("%v is no partition", devices)
	}
	if asked := eventsSince(t, c, mark, "preferred"); len(asked) != 1 {
		t.Errorf("kubelet asked %d times, want only for the init container", len(asked))
	}
	deletePods(c, "same")
}

// kubelet takes a part of them at random and does not ask: whether it is a partition is chance, and
// the agent warns if it is none.
func shrinksAfterInit(t *testing.T, c *lab.Cluster) {
	mark := c.Agent.Log().Mark()
	c.Admitted(withInit("shrinks", 4, 2))
	devices := c.Devices("shrinks")["vm"]
	if first := viewAddresses(t, c, "shrinks", "init"); without(devices, first) != nil {
		t.Errorf("the init container had %v, the main container has %v", first, devices)
	}
	if asked := eventsSince(t, c, mark, "preferred"); len(asked) != 1 {
		t.Errorf("kubelet asked %d times, want only for the init container", len(asked))
	}
	_, is := c.Board().PartitionOf(devices)
	if warned := eventsSince(t, c, mark, "no_partition"); is == (len(warned) > 0) {
		t.Errorf("%v: a partition: %v; warnings: %v", devices, is, warned)
	}
	// The rest of the init container's stay the pod's, though PodResources does not list them.
	c.CreatePod(lab.Pod("next", lab.Container("vm", h100, 5)))
	c.WaitUnschedulable("next")
	deletePods(c, "shrinks", "next")
}

func withInit(name string, initSize, size int64) *corev1.Pod {
	pod := lab.Pod(name, lab.Container("vm", h100, size))
	pod.Spec.InitContainers = []corev1.Container{lab.InitContainer("init", h100, initSize)}
	return pod
}

func deletePods(c *lab.Cluster, names ...string) {
	for _, name := range names {
		c.BeginDelete(name)
	}
	for _, name := range names {
		c.DeletePod(name)
	}
}

// without is what is in `all` and not in `others`.
func without(all, others []string) (rest []string) {
	for _, one := range all {
		if !slices.Contains(others, one) {
			rest = append(rest, one)
		}
	}
	return rest
}

func viewAddresses(t *testing.T, c *lab.Cluster, pod, container string) []string {
	t.Helper()
	view := c.View(pod, container)
	if view.Env[h100Env] == "" {
		t.Fatalf("pod %s, container %s: no %s in %v", pod, container, h100Env, view.Env)
	}
	return slices.Sorted(slices.Values(strings.Split(view.Env[h100Env], ",")))
}

// expectView: a container's environment and nodes are those of its devices and nothing else.
func expectView(t *testing.T, c *lab.Cluster, pod, container string, devices []string) {
	t.Helper()
	if got := viewAddresses(t, c, pod, container); !slices.Equal(got, devices) {
		t.Errorf("pod %s, container %s: the environment says %v, kubelet %v", pod, container, got, devices)
	}
	want := kubevirtNodes(t, c.Board(), devices)
	if got := c.View(pod, container).Paths(); !slices.Equal(got, want) {
		t.Errorf("pod %s, container %s: nodes %v, want exactly %v", pod, container, got, want)
	}
}
