// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"switchyard/tests/cluster/lab"
)

// The scenarios of tests/data/kubelet-scenarios.json on a real kubelet; tests/node/scenarios_test.cpp
// does the same ones on the simulated kubelet, in the same modes. One cluster for all that share kubelet's
// configuration, and for both modes.
//
// In enforce every container's GPUs must be an active partition besides.
func TestKubeletScenarios(t *testing.T) { runScenarios(t, "") }

func TestKubeletScenariosOfBestEffort(t *testing.T)     { runScenarios(t, "best-effort") }
func TestKubeletScenariosOfRestricted(t *testing.T)     { runScenarios(t, "restricted") }
func TestKubeletScenariosOfSingleNumaNode(t *testing.T) { runScenarios(t, "single-numa-node") }

func runScenarios(t *testing.T, policy string) {
	file := mustReadScenarios(t)
	options := lab.Options{Board: file.Board, AgentConfig: jsonLog}
	if policy != "" {
		options.KubeletConfig = "topologyManagerPolicy: " + policy
	}
	c := lab.Start(t, options)
	c.WaitAllocatable(h100, 8)
	mode := advise
	for _, next := range []string{advise, enforce} {
		for _, s := range file.Scenarios {
			if s.TopologyPolicy != policy || !s.isFor(next) {
				continue
			}
			if mode != next {
				useMode(c, next)
				mode = next
			}
			if !runScenario(t, c, mode, s) {
				return // what it left would only confuse the others
			}
		}
	}
}

// runScenario returns false if the scenario left something behind.
func runScenario(t *testing.T, c *lab.Cluster, mode string, s scenario) (clean bool) {
	clean = true // also where -test.run leaves it out
	t.Run(mode+"/"+s.Name, func(t *testing.T) {
		clean = false
		run := &scenarioRun{t: t, c: c, mode: mode, pods: map[string]bool{},
			plugins: map[string]*scripted{}, views: map[string][]string{}}
		for i, one := range s.Steps {
			run.where = s.Name + ": steps[" + strconv.Itoa(i) + "]: " + one.Do
			run.do(one)
		}
		run.where = "after it"
		run.cleanUp()
		clean = true
	})
	return clean
}

type scenarioRun struct {
	t     *testing.T
	c     *lab.Cluster
	mode  string
	where string

	pods    map[string]bool // those that were created and not deleted; true: admitted
	views   map[string][]string
	plugins map[string]*scripted
	gone    []int // modules
	mark    int64 // of the agent's log at the last create-pod
}

func (r *scenarioRun) errorf(format string, args ...any) {
	r.t.Helper()
	r.t.Errorf(r.where+": "+format, args...)
}

func (r *scenarioRun) do(s step) {
	c := r.c
	switch s.Do {
	case "create-pod":
		r.createPod(s)
	case "expect-admitted":
		c.WaitRunning(s.Pod)
		r.pods[s.Pod] = true
		r.look(s.Pod)
		if r.mode == enforce {
			expectActive(r.t, c, s.Pod)
		}
	case "expect-refused":
		pod := c.WaitPod(s.Pod, "fail", func(pod *corev1.Pod) bool { return finished(pod) || runsNow(pod) })
		if pod.Status.Phase != corev1.PodFailed || pod.Status.Reason != s.Reason ||
			!strings.Contains(pod.Status.Message, s.Message) {
			r.errorf("pod %s: %s, reason %q, message %q, want it refused: %q, %q", s.Pod, pod.Status.Phase,
				pod.Status.Reason, pod.Status.Message, s.Reason, s.Message)
		}
	case "expect-devices":
		r.expectDevices(s)
	case "expect-handed":
		r.expectHanded(s)
	case "expect-list":
		r.expectList(s.Pods)
	case "expect-unknown":
		r.expectUnknown(s.Pod)
	case "expect-node":
		r.expectNode(s)
	case "expect-calls":
		for _, call := range []struct {
			want   int
			events []string
		}{{s.Preferred, []string{"preferred"}}, {s.Allocate, []string{"allocate", "allocate_failed"}}} {
			if got := eventsSince(r.t, c, r.mark, call.events...); len(got) != call.want {
				r.errorf("%d calls, want %d %s: %v", len(got), call.want, call.events[0], got)
			}
		}
	case "delete-pod":
		c.DeletePod(s.Pod)
		delete(r.pods, s.Pod)
	case "stop-kubelet":
		c.Kubelet.Stop()
	case "delete-checkpoint":
		if err := os.Remove(c.Path("kubelet/device-plugins/kubelet_internal_checkpoint")); err != nil {
			r.t.Fatal(r.where, err)
		}
	case "start-kubelet":
		r.startKubelet()
	case "stop-agent":
		c.Agent.Stop()
		c.WaitAllocatable(h100, 0)
	case "start-agent":
		mark := c.Kubelet.Log().Mark()
		c.Agent.Start()
		r.kubeletHasList(mark)
	case "gpu-vanishes":
		c.Sim("fault", "device", strconv.Itoa(s.Module), "vanish")
		r.gone = append(r.gone, s.Module)
	case "gpu-returns":
		c.Sim("fault", "device", strconv.Itoa(s.Module), "return")
		r.gone = slices.DeleteFunc(r.gone, func(module int) bool { return module == s.Module })
	case "plugin-listens":
		r.plugins[s.Plugin] = newScripted(r.t, c, s.Plugin+".sock", s.Devices...)
	case "plugin-registers":
		r.register(s)
	case "plugin-stream-ends":
		r.endStream(s.Plugin)
	default:
		r.t.Fatalf("%s: this runner does not have it", r.where)
	}
}

func finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

func runsNow(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning }

// createPod gives the pod to kubelet, past the scheduler: it would keep back what does not fit.
func (r *scenarioRun) createPod(s step) {
	make := func(spec container, build func(string, string, int64) corev1.Container) corev1.Container {
		if spec.Things > 0 {
			return build(spec.Name, thing, spec.Things)
		}
		return build(spec.Name, h100, spec.GPUs)
	}
	var containers []corev1.Container
	for _, spec := range s.Containers {
		containers = append(containers, make(spec, lab.Container))
	}
	pod := lab.Pod(s.Pod, containers...)
	for _, spec := range s.InitContainers {
		if spec.Restartable {
			always, side := corev1.ContainerRestartPolicyAlways, make(spec, lab.Container)
			side.RestartPolicy = &always
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, side)
		} else {
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, make(spec, lab.InitContainer))
		}
	}
	pod.Spec.NodeName = r.c.Node().Name
	r.mark = r.c.Agent.Log().Mark()
	r.c.CreatePod(pod)
	r.pods[s.Pod] = false
}

// look remembers what the containers' environment says, for the time when the pod is gone.
func (r *scenarioRun) look(name string) {
	pod := r.c.WaitRunning(name)
	for _, one := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if _, has := one.Resources.Limits[h100]; has && r.views[name+"/"+one.Name] == nil {
			r.views[name+"/"+one.Name] = viewAddresses(r.t, r.c, name, one.Name)
		}
	}
}

func (r *scenarioRun) expectDevices(s step) {
	devices := r.c.Devices(s.Pod)[s.Container]
	if len(devices) != s.Count {
		r.errorf("pod %s, container %s has %v, want %d", s.Pod, s.Container, devices, s.Count)
	}
	if _, is := r.c.Board().PartitionOf(devices); s.Partition != "" && is != (s.Partition == "one") {
		r.errorf("pod %s, container %s: %v, a partition: %v, want %s", s.Pod, s.Container, devices, is,
			s.Partition)
	}
}

func (r *scenarioRun) expectHanded(s step) {
	of, to := r.views[s.Of], r.views[s.To]
	if of == nil || to == nil {
		r.t.Fatalf("%s: %s or %s was not seen running with GPUs", r.where, s.Of, s.To)
	}
	holds := map[string]bool{
		"equals":     slices.Equal(of, to),
		"within":     without(of, to) == nil,
		"contains":   without(to, of) == nil,
		"apart-from": len(without(of, to)) == len(of),
	}
	if !holds[s.Relation] {
		r.errorf("%s had %v, %s had %v: not %s", s.Of, of, s.To, to, s.Relation)
	}
}

func (r *scenarioRun) expectNode(s step) {
	name := corev1.ResourceName(map[string]string{"gpu": h100, "thing": thing}[s.Resource])
	r.c.WaitNode(r.where, func(node *corev1.Node) bool {
		capacity, allocatable := node.Status.Capacity[name], node.Status.Allocatable[name]
		return capacity.Value() == s.Capacity && allocatable.Value() == s.Allocatable
	})
}

func (r *scenarioRun) startKubelet() {
	mark := r.c.Kubelet.Log().Mark()
	r.c.Kubelet.Start()
	r.c.WaitReady()
	if r.c.Agent.Running() {
		r.kubeletHasList(mark)
	}
	for pod, admitted := range r.pods {
		if admitted {
			r.waitKnown(pod)
		}
	}
}

// kubeletHasList waits until kubelet has the agent's devices, behind a mark of its log.
func (r *scenarioRun) kubeletHasList(mark int64) {
	r.c.Kubelet.WaitLogAfter(mark, `"Processed device updates for resource" resourceName="`+h100+`"`)
}

func (r *scenarioRun) register(s step) {
	plugin := r.plugins[s.Plugin]
	err := plugin.register()
	switch {
	case s.Refused == "" && err != nil:
		r.t.Fatalf("%s: plugin %s: %v", r.where, s.Plugin, err)
	case s.Refused == "":
		receive(r.t, plugin.streams, "kubelet to ask "+s.Plugin+" for its devices")
	case err == nil || !strings.Contains(err.Error(), s.Refused):
		r.errorf("plugin %s: %v, want it refused: %s", s.Plugin, err, s.Refused)
	}
}

func (r *scenarioRun) endStream(plugin string) {
	mark := r.c.Kubelet.Log().Mark()
	close(r.plugins[plugin].end)
	r.c.Kubelet.WaitLogAfter(mark, `"ListAndWatch ended unexpectedly for device plugin"`)
}

// cleanUp leaves the cluster as a scenario expects it.
func (r *scenarioRun) cleanUp() {
	deletePods(r.c, slices.Sorted(maps.Keys(r.pods))...)
	for _, module := range r.gone {
		r.c.Sim("fault", "device", strconv.Itoa(module), "return")
	}
	if !r.c.Agent.Running() {
		r.c.Agent.Start()
	}
	r.c.WaitAllocatable(h100, 8)
	for _, plugin := range r.plugins {
		plugin.server.Stop()
	}
	r.expectList(map[string]map[string]int{})
}
