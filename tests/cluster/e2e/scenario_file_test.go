// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"
)

const scenarioFile = "../../data/kubelet-scenarios.json"

// scenarios is the file that the simulated kubelet's runner reads too; it says itself what it means.
type scenarios struct {
	About          []string   `json:"about"`
	Board          string     `json:"board"`
	GPU            string     `json:"gpu"`
	GPUEnvironment string     `json:"gpuEnvironment"`
	Thing          string     `json:"thing"`
	Scenarios      []scenario `json:"scenarios"`
}

type scenario struct {
	Name           string            `json:"name"`
	About          string            `json:"about"`
	TopologyPolicy string            `json:"topologyPolicy"`
	RawMode        json.RawMessage   `json:"mode"` // absent: both
	RawSteps       []json.RawMessage `json:"steps"`
	Steps          []step            `json:"-"`
}

// isFor says whether it is done with the agent in that fabric.mode.
func (s *scenario) isFor(mode string) bool { return s.RawMode == nil || mode == advise }

type container struct {
	Name        string `json:"name"`
	GPUs        int64  `json:"gpus"`
	Things      int64  `json:"things"`
	Restartable bool   `json:"restartable"`
}

type step struct {
	Do             string                    `json:"do"`
	Pod            string                    `json:"pod"`
	Containers     []container               `json:"containers"`
	InitContainers []container               `json:"initContainers"`
	Reason         string                    `json:"reason"`
	Message        string                    `json:"message"`
	Container      string                    `json:"container"`
	Count          int                       `json:"count"`
	Partition      string                    `json:"partition"`
	Of             string                    `json:"of"`
	Relation       string                    `json:"relation"`
	To             string                    `json:"to"`
	Pods           map[string]map[string]int `json:"pods"`
	Resource       string                    `json:"resource"`
	Capacity       int64                     `json:"capacity"`
	Allocatable    int64                     `json:"allocatable"`
	Preferred      int                       `json:"preferred"`
	Allocate       int                       `json:"allocate"`
	Module         int                       `json:"module"`
	Plugin         string                    `json:"plugin"`
	Devices        []string                  `json:"devices"`
	Refused        string                    `json:"refused"`
}

// What a step has beside `do`.
var stepKeys = map[string]struct{ required, optional []string }{
	"create-pod":         {[]string{"pod", "containers"}, []string{"initContainers"}},
	"expect-admitted":    {[]string{"pod"}, nil},
	"expect-refused":     {[]string{"pod", "reason", "message"}, nil},
	"expect-devices":     {[]string{"pod", "container", "count"}, []string{"partition"}},
	"expect-handed":      {[]string{"of", "relation", "to"}, nil},
	"expect-list":        {[]string{"pods"}, nil},
	"expect-unknown":     {[]string{"pod"}, nil},
	"expect-node":        {[]string{"resource", "capacity", "allocatable"}, nil},
	"expect-calls":       {[]string{"preferred", "allocate"}, nil},
	"delete-pod":         {[]string{"pod"}, nil},
	"stop-kubelet":       {},
	"delete-checkpoint":  {},
	"start-kubelet":      {},
	"stop-agent":         {},
	"start-agent":        {},
	"gpu-vanishes":       {[]string{"module"}, nil},
	"gpu-returns":        {[]string{"module"}, nil},
	"plugin-listens":     {[]string{"plugin", "devices"}, nil},
	"plugin-registers":   {[]string{"plugin"}, []string{"refused"}},
	"plugin-stream-ends": {[]string{"plugin"}, nil},
}

// Values of keys that are words.
var stepWords = map[string][]string{
	"partition": {"one", "none"},
	"relation":  {"equals", "within", "contains", "apart-from"},
	"resource":  {"gpu", "thing"},
}

var topologyPolicies = []string{"best-effort", "restricted", "single-numa-node"}

// strictly refuses keys that `into` does not have.
func strictly(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}

// readScenarios says of an error in which scenario, step and key it is.
func readScenarios(text []byte) (*scenarios, error) {
	file := &scenarios{}
	if err := strictly(text, file); err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for i := range file.Scenarios {
		s := &file.Scenarios[i]
		where := fmt.Sprintf("scenarios[%d] (%s)", i, s.Name)
		switch {
		case s.Name == "" || s.About == "" || len(s.RawSteps) == 0:
			return nil, fmt.Errorf("%s: it needs name, about and steps", where)
		case names[s.Name]:
			return nil, fmt.Errorf("%s: name: there is one of that name before", where)
		case s.TopologyPolicy != "" && !slices.Contains(topologyPolicies, s.TopologyPolicy):
			return nil, fmt.Errorf("%s: topologyPolicy: %q is none of %v", where, s.TopologyPolicy,
				topologyPolicies)
		case s.RawMode != nil && string(s.RawMode) != `"advise"`:
			return nil, fmt.Errorf(`%s: mode: %s is not "advise"; leave it out if the scenario is for enforce too`,
				where, s.RawMode)
		}
		names[s.Name] = true
		for j, raw := range s.RawSteps {
			one, err := readStep(raw)
			if err != nil {
				return nil, fmt.Errorf("%s: steps[%d]: %w", where, j, err)
			}
			s.Steps = append(s.Steps, one)
		}
	}
	return file, nil
}

func readStep(raw json.RawMessage) (one step, err error) {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(raw, &keys); err != nil {
		return one, err
	}
	if err := strictly(raw, &one); err != nil {
		return one, err
	}
	known, found := stepKeys[one.Do]
	if !found {
		return one, fmt.Errorf("do: %q is no step", one.Do)
	}
	for _, key := range known.required {
		if _, has := keys[key]; !has {
			return one, fmt.Errorf("%s: %s: missing", one.Do, key)
		}
	}
	for key, value := range keys {
		if key != "do" && !slices.Contains(known.required, key) && !slices.Contains(known.optional, key) {
			return one, fmt.Errorf("%s: %s: no key of it", one.Do, key)
		}
		if words := stepWords[key]; words != nil {
			var word string
			if json.Unmarshal(value, &word) != nil || !slices.Contains(words, word) {
				return one, fmt.Errorf("%s: %s: %s is none of %v", one.Do, key, value, words)
			}
		}
	}
	for _, c := range one.InitContainers {
		if c.Name == "" {
			return one, fmt.Errorf("%s: initContainers: one has no name", one.Do)
		}
	}
	for _, c := range one.Containers {
		if c.Name == "" || c.Restartable {
			return one, fmt.Errorf("%s: containers: one has no name or is restartable", one.Do)
		}
	}
	return one, nil
}

func mustReadScenarios(t *testing.T) *scenarios {
	t.Helper()
	text, err := os.ReadFile(scenarioFile)
	if err != nil {
		t.Fatal(err)
	}
	file, err := readScenarios(text)
	if err != nil {
		t.Fatalf("%s: %v", scenarioFile, err)
	}
	if file.GPU != h100 || file.Thing != thing || file.GPUEnvironment != h100Env {
		t.Fatalf("%s: gpu, thing or gpuEnvironment: others than this package's", scenarioFile)
	}
	return file
}

// A key that nobody reads would be a check that nobody does.
func TestAWrongScenarioFileIsAnError(t *testing.T) {
	for text, want := range map[string]string{
		`{"scenario": []}`: `json: unknown field "scenario"`,
		`{"scenarios": [{"name": "a", "about": "b", "steps": [{"do": "fly"}]}]}`: `scenarios[0] (a): steps[0]: do: "fly" is no step`,
		`{"scenarios": [{"name": "a", "about": "b", "steps": [{"do": "expect-admitted"}]}]}`: `scenarios[0] (a): steps[0]: ` +
			`expect-admitted: pod: missing`,
		`{"scenarios": [{"name": "a", "about": "b", "steps": [{"do": "stop-agent"}, {"do": "stop-agent", "pod": "a"}]}]}`: `scenarios[0] (a): ` +
			`steps[1]: stop-agent: pod: no key of it`,
		`{"scenarios": [{"name": "a", "about": "b", "steps": [{"do": "gpu-returns", "modul": 1}]}]}`: `scenarios[0] (a): steps[0]: json: ` +
			`unknown field "modul"`,
		`{"scenarios": [{"name": "a", "about": "b", "topologyPolicy": "x", "steps": [{"do": "stop-agent"}]}]}`: `scenarios[0] (a): ` +
			`topologyPolicy: "x" is none of [best-effort restricted single-numa-node]`,
		`{"scenarios": [{"name": "a", "about": "b", "mode": "enforce", "steps": [{"do": "stop-agent"}]}]}`: `scenarios[0] (a): ` +
			`mode: "enforce" is not "advise"; leave it out if the scenario is for enforce too`,
		`{"scenarios": [{"name": "a", "about": "b", "mode": "", "steps": [{"do": "stop-agent"}]}]}`: `scenarios[0] (a): ` +
			`mode: "" is not "advise"; leave it out if the scenario is for enforce too`,
		`{"scenarios": [{"name": "a", "about": "b", "mode": null, "steps": [{"do": "stop-agent"}]}]}`: `scenarios[0] (a): ` +
			`mode: null is not "advise"; leave it out if the scenario is for enforce too`,
	} {
		if _, err := readScenarios([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestAScenarioIsForBothModesUnlessItSaysAdvise(t *testing.T) {
	file, err := readScenarios([]byte(`{"scenarios": [
		{"name": "both", "about": "b", "steps": [{"do": "stop-agent"}]},
		{"name": "one", "about": "b", "mode": "advise", "steps": [{"do": "stop-agent"}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range [][]string{{advise, enforce}, {advise}} {
		var got []string
		for _, mode := range []string{advise, enforce} {
			if file.Scenarios[i].isFor(mode) {
				got = append(got, mode)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s is for %v, want %v", file.Scenarios[i].Name, got, want)
		}
	}
}
