// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"switchyard/tests/cluster/lab"
)

const readers = 4

// Pods come and go side by side while kubelet's PodResources is read: by the agent in its own way, and
// with Get by others each time that a pod changes. No GPU may be two pods'. (A List of somebody else's
// can make kubelet do that whatever the agent does: TestAListDuringAllocateAfterAPodEnded…)
func TestNoDeviceGoesTwiceWhilePodResourcesIsRead(t *testing.T) {
	c := lab.Start(t, lab.Options{})
	c.WaitAllocatable(h100, 8)
	stop := readPodResources(t, c)
	random := rand.New(rand.NewPCG(4, 2))
	live := map[string]int{} // pod: GPUs
	owner := map[string]string{}
	used, admitted := 0, 0
	for round := range 12 {
		for pod, size := range live { // in a random order, which nothing here depends on
			if random.IntN(2) == 0 {
				c.BeginDelete(pod)
				delete(live, pod)
				used -= size
			}
		}
		var fresh []string
		for used < 8 {
			size := 1 << random.IntN(3)
			if used+size > 8 {
				continue
			}
			pod := fmt.Sprintf("r%d-%d", round, len(fresh))
			c.CreatePod(lab.Pod(pod, lab.Container("vm", h100, int64(size))))
			live[pod] = size
			used += size
			fresh = append(fresh, pod)
		}
		for _, pod := range fresh {
			c.WaitRunning(pod)
			admitted++
		}
		clear(owner)
		for pod, size := range live {
			devices := insideOf(c, pod)
			if len(devices) != size {
				t.Errorf("round %d: pod %s sees %v, want %d GPUs", round, pod, devices, size)
			}
			for _, device := range devices {
				if other, taken := owner[device]; taken {
					t.Errorf("round %d: pods %s and %s both have %s", round, pod, other, device)
				}
				owner[device] = pod
			}
		}
	}
	t.Logf("%d pods admitted, %d answers of Get", admitted, stop())
	if listed := c.Holders(h100); !maps.Equal(listed, owner) {
		t.Errorf("PodResources lists %v, the containers see %v", listed, owner)
	}
}

// insideOf is what the launcher of a VM is told in its environment, sorted.
func insideOf(c *lab.Cluster, pod string) []string {
	devices := strings.Split(c.View(pod, "vm").Env[h100Env], ",")
	slices.Sort(devices)
	return devices
}

// readPodResources asks for each pod whenever it changes. `stop` ends that, and says how often there
// was an answer.
func readPodResources(t *testing.T, c *lab.Cluster) (stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	counts := make([]int, readers)
	var group sync.WaitGroup
	for i := range readers {
		changes, err := c.Client.CoreV1().Pods("default").Watch(ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		client, done := c.PodResources()
		group.Go(func() {
			defer done()
			defer changes.Stop()
			for change := range changes.ResultChan() {
				pod, ok := change.Object.(*corev1.Pod)
				if !ok {
					continue
				}
				// An error is no answer: the pod is not kubelet's yet, or gone, or it is asked too often.
				if _, err := client.Get(ctx, &podresources.GetPodResourcesRequest{
					PodName: pod.Name, PodNamespace: pod.Namespace,
				}); err == nil {
					counts[i]++
				}
			}
		})
	}
	return func() (all int) {
		cancel()
		group.Wait()
		for i, count := range counts {
			if count == 0 {
				t.Errorf("reader %d had no answer at all", i)
			}
			all += count
		}
		return all
	}
}
