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

	"switchyard/tests/cluster/lab"
)

// Pods of random sizes come and go, several at once; after every step each pod's placement is held
// against the partition table, and no GPU is in two pods: not in kubelet's word, and not in what the
// containers see.
func TestManyPodsComeAndGo(t *testing.T) {
	total := 200
	if os.Getenv("CI") == "true" {
		total = 60
	}
	seed := seedOf(t)
	t.Logf("%d pods, CLUSTER_SEED=%d (kubelet's own choices are not repeated by it)", total, seed)
	r := newChurn(t, seed)
	for steps := 0; r.created < total; steps++ {
		r.step(total)
		if t.Failed() {
			t.Fatalf("in step %d, after %d pods", steps, r.created)
		}
	}
	t.Logf("%d pods, %d of them on a partition", r.created, r.onPartition)
	if r.onPartition < r.created/2 {
		t.Error("most pods are on no partition: there was none for them, or it was not found")
	}
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
	now         *placement
	live        map[string]livePod
	created     int
	onPartition int
}

type livePod struct {
	size    int
	devices []string
	view    lab.View
}

func newChurn(t *testing.T, seed uint64) *churn {
	c := lab.Start(t, lab.Options{AgentConfig: jsonLog})
	c.WaitAllocatable(h100, 8)
	return &churn{
		t: t, c: c, random: rand.New(rand.NewPCG(seed, 0)), now: newPlacement(c.Board()),
		live: map[string]livePod{},
	}
}

// step deletes some pods and creates others, without waiting in between, and then looks.
func (r *churn) step(total int) {
	mark := r.c.Agent.Log().Mark()
	deleted := r.deleteSome()
	created := r.createSome(total)
	for _, name := range slices.Sorted(maps.Keys(created)) {
		r.c.WaitRunning(name)
		r.live[name] = livePod{created[name], r.c.Devices(name)["vm"], r.c.View(name, "vm")}
	}
	for _, name := range deleted {
		r.c.DeletePod(name)
	}
	r.place(eventsSince(r.t, r.c, mark, "preferred", "allocate"), created)
	r.expectNothingShared(deleted)
}

func (r *churn) deleteSome() (names []string) {
	for _, name := range slices.Sorted(maps.Keys(r.live)) {
		if r.random.IntN(3) == 0 || len(r.now.free()) == 0 && len(names) == 0 {
			names = append(names, name)
			r.c.BeginDelete(name)
			r.now.remove(name)
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
		r.c.CreatePod(lab.Pod(name, lab.Container("vm", h100, int64(size))))
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
