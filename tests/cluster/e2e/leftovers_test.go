// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"

	"switchyard/tests/cluster/lab"
)

// A process that starts a cluster with a pod in it, says where, and waits to be killed.
const childVariable = "CLUSTER_E2E_CHILD"

// Of the names of clusters' folders and control groups.
const prefix = "switchyard-cluster-"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) == "" {
		os.Exit(m.Run())
	}
	fatal := func(err error) {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
	c, err := lab.New(lab.Options{}, fatal)
	if err != nil {
		fatal(fmt.Errorf("%w (%v)\n%s", err, c.Close(), c.Report()))
	}
	c.WaitAllocatable(h100, 8)
	c.Admitted(lab.Pod("vm", lab.Container("vm", h100, 2)))
	fmt.Println("up:", c.Path())
	select {}
}

func TestNothingIsLeftOfAKilledTest(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("a cluster needs root")
	}
	before := machine(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(self)
	child.Env = append(os.Environ(), childVariable+"=yes")
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	dir, up := strings.CutPrefix(strings.TrimSpace(line), "up: ")
	if !up {
		rest, _ := lines.ReadString(0)
		t.Fatalf("the child: %s%s (%v)", line, rest, err)
	}
	sees := func(line string) bool { return strings.Contains(line, filepath.Base(dir)) }
	if during := machine(t); !slices.ContainsFunc(during, sees) {
		t.Error("a running cluster is not seen: this test looks at the wrong things")
	}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Close()
	if err := watcher.Add(filepath.Dir(dir)); err != nil {
		t.Fatal(err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	for exists(dir) { // removed last
		<-watcher.Events
	}
	awaitEndOf(t, filepath.Base(dir)) // of the keeper, which has removed it
	for _, line := range machine(t) {
		// Somebody else's cluster may have come up meanwhile.
		others := strings.Contains(line, prefix) && !strings.Contains(line, filepath.Base(dir))
		if !others && !slices.Contains(before, line) {
			t.Errorf("left behind: %s", line)
		}
	}
}

// awaitEndOf returns when no process names `cluster` any more, or after ten seconds for each.
func awaitEndOf(t *testing.T, cluster string) {
	t.Helper()
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range commands {
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), cluster) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			t.Fatal(err)
		}
		process, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue // it has ended
		}
		end := []unix.PollFd{{Fd: int32(process), Events: unix.POLLIN}}
		for {
			if _, err := unix.Poll(end, 10_000); err != unix.EINTR {
				break
			}
		}
		unix.Close(process)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// machine lists what a cluster could leave: mounts, control groups, folders, the files of /dev, the
// processes of our programs.
func machine(t *testing.T) (all []string) {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	all = strings.Split(string(mounts), "\n")
	for _, pattern := range []string{
		"/dev/*", "/run/*", "/run/cdi/*", "/run/containerd/*", "/var/lib/*", "/var/lib/kubelet/*",
		"/var/lib/cni/*", "/var/log/*", "/etc/*", "/usr/libexec/*", "/sys/fs/cgroup/*",
		filepath.Join(os.TempDir(), prefix+"*"),
	} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, paths...)
	}
	err = filepath.WalkDir("/sys/fs/cgroup", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			if strings.Contains(path, prefix) || strings.Contains(path, "kubepods") {
				all = append(all, path)
			}
		}
		return nil // other control groups come and go
	})
	if err != nil {
		t.Fatal(err)
	}
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range commands {
		text, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(text), prefix) {
			all = append(all, filepath.Dir(path)+" "+strings.ReplaceAll(string(text), "\x00", " "))
		}
	}
	return all
}

func TestTwoClustersRunBesideEachOther(t *testing.T) {
	first := lab.Start(t, lab.Options{})
	second := lab.Start(t, lab.Options{Board: "hgx-b200"})
	first.WaitAllocatable(h100, 8)
	first.Admitted(lab.Pod("vm", lab.Container("vm", h100, 4)))
	second.WaitNode("GPUs", func(node *lab.Node) bool {
		for name, quantity := range node.Status.Allocatable {
			if strings.HasPrefix(string(name), "nvidia.com/") && quantity.Value() == 8 {
				return true
			}
		}
		return false
	})
	if _, has := second.Node().Status.Allocatable[h100]; has {
		t.Error("the second cluster offers the first one's GPUs")
	}
	if pods := second.Kubectl("get", "pods", "-o", "name"); pods != "" {
		t.Errorf("the second cluster has %s", pods)
	}
}
