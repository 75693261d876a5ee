// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"strings"
	"testing"

	"switchyard/tests/cluster/lab"
)

// A plugin that was replaced ends after its successor has registered: what kubelet does with the
// successor then. The simulated kubelet's resource table does the same.
func TestTheEndOfAnOldStreamDoesNotStopANewRegistration(t *testing.T) {
	c := lab.Start(t, lab.Options{NoAgent: true})
	before := newScripted(t, c, "before.sock", "a", "b")
	before.mustRegister(t)
	c.WaitAllocatable(thing, 2)
	after := newScripted(t, c, "after.sock", "a", "b", "c")
	allocated := make(chan []string, 1)
	after.allocate = func(ids []string) { allocated <- ids }
	after.mustRegister(t)
	c.WaitAllocatable(thing, 3)

	mark := c.Kubelet.Log().Mark()
	close(before.end)
	c.Kubelet.WaitLogAfter(mark, `"Device plugin disconnected"`)
	// A stopped endpoint would refuse this pod, and no device of it be healthy.
	c.Admitted(lab.Pod("pod", lab.Container("all", thing, 3)))
	ids := receive(t, allocated, "the new plugin's Allocate")
	if slices.Sort(ids); !slices.Equal(ids, []string{"a", "b", "c"}) {
		t.Errorf("allocated %v, want all three", ids)
	}

	close(after.end)
	c.WaitAllocatable(thing, 0)
}

// Why a plugin needs a new socket name each time it registers: kubelet refuses a name that it is
// connected to, and forgets in the same moment to watch that connection. From then on it notices
// nothing that happens to the plugin, and refuses its name for ever.
func TestASocketNameThatIsRegisteredTwiceIsLostToKubelet(t *testing.T) {
	c := lab.Start(t, lab.Options{NoAgent: true})
	first := newScripted(t, c, "first.sock", "a", "b")
	first.mustRegister(t)
	c.WaitAllocatable(thing, 2)
	expectRefused := func(when string) {
		t.Helper()
		if err := first.register(); err == nil || !strings.Contains(err.Error(), "already connected") {
			t.Errorf("registered %s: %v, want it refused as already connected", when, err)
		}
	}
	expectRefused("twice")

	mark := c.Kubelet.Log().Mark()
	close(first.end)
	c.Kubelet.WaitLogAfter(mark, `"ListAndWatch ended unexpectedly for device plugin"`)
	expectRefused("after its end")
	if lines := c.Kubelet.Log().Lines(mark, `"Device plugin disconnected"`); len(lines) != 0 {
		t.Errorf("kubelet noticed: %v", lines)
	}

	second := newScripted(t, c, "second.sock", "a", "b", "c")
	second.mustRegister(t)
	c.WaitAllocatable(thing, 3)
}
