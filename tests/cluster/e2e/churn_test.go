// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"switchyard/tests/cluster/lab"
)

// Pods of random sizes come and go, several at once; after every step each pod's placement is held
// against the partition table, and no GPU is in two pods: not in kubelet's word, and not in what the
// containers see.
func TestManyPodsComeAndGo(t *testing.T) {
	r := newChurn(t, jsonLog)
	r.run(podsOf(t, 200, 60), func() {})
	t.Logf("%d pods, %d of them on a partition", r.created, r.onPartition)
	if r.onPartition < r.created/2 {
		t.Error("most pods are on no partition: there was none for them, or it was not found")
	}
}

// podsOf is the number of pods: fewer in CI, or CLUSTER_PODS.
func podsOf(t *testing.T, all, inCI int) int {
	if text := os.Getenv("CLUSTER_PODS"); text != "" {
		count, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("CLUSTER_PODS: %v", err)
		}
		return count
	}
	if os.Getenv("CI") == "true" {
		return inCI
	}
	return all
}

func seedOf(t *testing.T) uint64 {
	text := os.Getenv("CLUSTER_SEED")
	if text == "" {
		return uint64(time.Now().UnixNano())
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("CLUSTER_SEED: %v", err)
	}
	return seed
}

type churn struct {
	t           *testing.T
	c           *lab.Cluster
	random      *rand.Rand
	build       func(resource string, count int64) corev1.Container
	now         *placement
	live        map[string]livePod
	rejected    map[string]string // of the present step, with kubelet's message
	ended       map[string][]string
	created     int
	onPartition int

	refusedAsHeld int
}

type livePod struct {
	size    int
	devices []string
	view    lab.View
}

func newChurn(t *testing.T, config map[string]string) *churn {
	seed := seedOf(t)
	t.Logf("CLUSTER_SEED=%d (kubelet's own choices are not repeated by it)", seed)
	c := lab.Start(t, lab.Options{AgentConfig: config})
	c.WaitAllocatable(h100, 8)
	return &churn{
		t: t, c: c, random: rand.New(rand.NewPCG(seed, 0)), now: newPlacement(c.Board()),
		build: func(resource string, count int64) corev1.Container {
			return lab.Container("vm", resource, count)
		},
		live: map[string]livePod{}, rejected: map[string]string{}, ended: map[string][]string{},
	}
}

// run makes this many pods, and calls `after` behind each step.
func (r *churn) run(total int, after func()) {
	for steps := 0; r.created < total; steps++ {
		r.step(total)
		after()
		if r.t.Failed() {
			r.t.Fatalf("in step %d, after %d pods", steps, r.created)
		}
	}
}

// step deletes some pods and creates others, without waiting in between, and then looks.
func (r *churn) step(total int) {
	mark := r.c.Agent.Log().Mark()
	deleted := r.deleteSome()
	created := r.createSome(total)
	clear(r.rejected)
	for _, name := range slices.Sorted(maps.Keys(created)) {
		if pod := admittedOrRejected(r.c, name); pod.Status.Phase == corev1.PodFailed {
			r.rejected[name] = pod.Status.Message
		} else {
			r.live[name] = livePod{created[name], r.c.Devices(name)["vm"], r.c.View(name, "vm")}
		}
	}
	deletePods(r.c, slices.Concat(deleted, slices.Collect(maps.Keys(r.rejected)))...)
	r.place(eventsSince(r.t, r.c, mark, "preferred", "allocate", "allocate_failed"), created)
	r.expectNothingShared(deleted)
}

func (r *churn) deleteSome() (names []string) {
	for _, name := range slices.Sorted(maps.Keys(r.live)) {
		if r.random.IntN(3) == 0 || len(r.now.free()) == 0 && len(names) == 0 {
			names = append(names, name)
			r.c.BeginDelete(name)
			r.now.remove(name)
			r.ended[name] = r.live[name].devices
			delete(r.live, name)
		}
	}
	return names
}

// createSome creates up to three pods that have room together.
func (r *churn) createSome(total int) map[string]int {
	sizes := map[string]int{}
	room := len(r.now.free())
	for range 1 + r.random.IntN(3) {
		size := []int{1, 1, 1, 1, 2, 2, 2, 4, 4, 8}[r.random.IntN(10)]
		if size > room || r.created == total {
			continue
		}
		room -= size
		name := fmt.Sprintf("pod%d-of%d", r.created, size)
		r.created++
		sizes[name] = size
		r.c.CreatePod(lab.Pod(name, r.build(h100, int64(size))))
	}
	return sizes
}

// place takes the pods of a step in the order in which kubelet admitted them, which the agent's log
// has: one question and one allocation each.
func (r *churn) place(events []event, created map[string]int) {
	if len(events) != 2*len(created) {
		r.t.Fatalf("%d pods and these events: %v", len(created), events)
	}
	for i := 0; i < len(events); i += 2 {
		asked, given := events[i], events[i+1]
		if given["event"] == "allocate_failed" {
			r.placeRejected(asked, given, created)
			continue
		}
		addresses := slices.Sorted(slices.Values(given.list("pci")))
		name := r.podWith(addresses, created)
		if name == "" {
			r.t.Fatalf("allocated %v: no new pod has that", addresses)
		}
		r.expectOffer(name, asked)
		r.now.put(r.t, name, created[name], addresses)
		if _, is := r.now.board.PartitionOf(addresses); is {
			r.onPartition++
		}
		delete(created, name)
	}
}

// placeRejected: the agent may refuse a set only in enforce, and only for want of a partition, or because
// a process of a pod that has gone still has a GPU of it.
func (r *churn) placeRejected(asked, given event, created map[string]int) {
	size := len(given.list("ids"))
	for name, message := range r.rejected {
		if created[name] != size {
			continue
		}
		r.expectOffer(name, asked)
		delete(r.rejected, name)
		delete(created, name)
		if strings.Contains(message, "are still held open") {
			r.refusedAsHeld++
			r.t.Logf("pod %s was refused: %s", name, message)
			return
		}
		if could, possible := partitionIn(r.now.board, r.now.free(), size); possible {
			r.t.Errorf("pod %s was refused, and partition %d (modules %v) was free: %s", name, could.ID,
				could.Modules, message)
		}
		if !strings.Contains(message, "are no partition") {
			r.t.Errorf("pod %s was refused: %s", name, message)
		}
		return
	}
	r.t.Errorf("refused %v: no new pod of that size was: %s", given.list("ids"), given["msg"])
}

func (r *churn) podWith(addresses []string, among map[string]int) string {
	for name := range among {
		if slices.Equal(r.live[name].devices, addresses) {
			return name
		}
	}
	return ""
}

// expectOffer: kubelet offered what nobody has. Else a placement that had no choice would look like a
// bad one.
func (r *churn) expectOffer(pod string, asked event) {
	free := slices.Sorted(slices.Values(r.now.free()))
	offered := slices.Sorted(slices.Values(asked.list("available")))
	if !slices.Equal(free, offered) {
		r.t.Errorf("pod %s: kubelet offered %v, free were %v", pod, offered, free)
	}
}

// expectNothingShared compares all live pods with each other. No pod is being admitted now, so
// kubelet's List can be read without harm.
func (r *churn) expectNothingShared(deleted []string) {
	listed := map[string][]string{}
	for address, pod := range r.c.Holders(h100) {
		listed[pod] = append(listed[pod], address)
		if owner := r.now.owner[address]; owner != pod && !slices.Contains(deleted, pod) {
			r.t.Errorf("kubelet lists %s for pod %s, it was given to %q", address, pod, owner)
		}
	}
	seen := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(r.live)) {
		pod := r.live[name]
		if got := slices.Sorted(slices.Values(listed[name])); !slices.Equal(got, pod.devices) {
			r.t.Errorf("pod %s had %v, now kubelet lists %v", name, pod.devices, got)
		}
		inside := slices.Sorted(slices.Values(strings.Split(pod.view.Env[h100Env], ",")))
		if !slices.Equal(inside, pod.devices) {
			r.t.Errorf("pod %s sees %v, kubelet says %v", name, inside, pod.devices)
		}
		for _, node := range pod.view.Nodes {
			if other, twice := seen[node.Number]; twice && node.Path != anyPlace {
				r.t.Errorf("pods %s and %s both have %s (%s)", name, other, node.Path, node.Number)
			}
			seen[node.Number] = name
		}
	}
}
