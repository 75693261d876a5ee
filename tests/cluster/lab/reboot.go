// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// PowerFails ends at once what a node's power failure does, but for the control plane: kubelet, agent,
// containerd, and every process of a container. Then the hardware starts again, as `switchyard-sim fault
// reboot` with these arguments says, and containerd; kubelet and agent are the test's to start.
func (c *Cluster) PowerFails(reboot ...string) {
	for _, component := range []*Component{c.Kubelet, c.Agent, c.Containerd} {
		component.Kill()
	}
	c.check(c.endContainers())
	c.Sim(append([]string{"fault", "reboot"}, reboot...)...)
	c.Containerd.Start()
	c.Containerd.WaitLog("containerd successfully booted")
}

// endContainers returns when the processes have ended. The shims are first: they would see to it that
// the rest ends in good order.
func (c *Cluster) endContainers() error {
	own, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", c.initPID))
	if err != nil {
		return err
	}
	isShim := func(process string) bool {
		name, _ := os.ReadFile(process + "/comm")
		space, _ := os.Readlink(process + "/ns/pid")
		return strings.HasPrefix(string(name), "containerd-shim") && space == own
	}
	isOfPod := func(process string) bool {
		group, _ := os.ReadFile(process + "/cgroup")
		return strings.Contains(string(group), groupOf(c.dir)+"/kubepods")
	}
	return errors.Join(endEvery(isShim), endEvery(isOfPod))
}

// endEvery kills the processes that `is` is true of, given their folders of /proc, and waits for it.
func endEvery(is func(process string) bool) error {
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return err
	}
	for _, folder := range folders {
		pid, err := strconv.Atoi(filepath.Base(folder))
		if err != nil {
			continue
		}
		process, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue // gone
		}
		if is(folder) {
			err = endOne(process)
		}
		unix.Close(process)
		if err != nil {
			return fmt.Errorf("ending process %d: %w", pid, err)
		}
	}
	return nil
}

func endOne(process int) error {
	if err := unix.PidfdSendSignal(process, unix.SIGKILL, nil, 0); err != nil {
		if errors.Is(err, unix.ESRCH) {
			return nil
		}
		return err
	}
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(process), Events: unix.POLLIN}},
			int(Patience.Milliseconds()))
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return err
		case n == 0:
			return fmt.Errorf("it is still there after %s", Patience)
		default:
			return nil
		}
	}
}
