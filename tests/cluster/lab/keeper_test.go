// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The namespaces alone, without a Kubernetes in them.
func bare(t *testing.T) *Cluster {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("namespaces need root")
	}
	c := newCluster(Options{}, func(err error) {
		t.Helper()
		t.Fatal(err)
	})
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, step := range []func() error{c.makeFolder, c.writeHost, c.startKeeper} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func TestAComponentIsStartedSignalledAndAwaited(t *testing.T) {
	c := bare(t)
	p := c.Component("p", "/bin/sh", "-c", "echo up; exec sleep 1000")
	p.Start()
	p.WaitLog("up")
	if err := p.start(); err == nil || !strings.Contains(err.Error(), "runs already") {
		t.Errorf("a second start: %v", err)
	}
	p.Kill()
	if status := p.Wait(); status != "signal: killed" || p.Running() {
		t.Errorf("after Kill: %s", status)
	}
	p.Restart()
	p.WaitLog("up") // of the new process: WaitLog does not look further back
	p.Stop()
	if status := p.Wait(); status != "signal: terminated" {
		t.Errorf("after Stop: %s", status)
	}
}

func TestAnEndThatNobodyAskedForEndsEveryWait(t *testing.T) {
	c := bare(t)
	p := c.Component("p", "/bin/sh", "-c", "exit 3")
	p.Start()
	_, err := p.waitLog("never said")
	if err == nil || !strings.Contains(err.Error(), "p ended by itself (exit status 3)") {
		t.Errorf("the wait: %v", err)
	}
}

func TestTheNodesFoldersAreTheClustersOwn(t *testing.T) {
	c := bare(t)
	c.Exec("sh", "-c", "echo mine > /var/lib/kubelet/x; echo mine > /var/run/cdi/y")
	for _, path := range []string{"kubelet/x", "cdi/y"} {
		if text, err := os.ReadFile(c.Path(path)); string(text) != "mine\n" {
			t.Errorf("%s: %q, %v", path, text, err)
		}
	}
	if got := c.Exec("cat", "/sys/devices/system/node/online"); got != "0-1\n" {
		t.Errorf("NUMA nodes %q", got)
	}
	if got := c.Exec("sh", "-c", "hostname; ls /dev/vfio 2>&1 | wc -l; cat /proc/1/comm"); !strings.HasPrefix(got, nodeName+"\n") {
		t.Errorf("%q", got)
	}
}

func TestAnAbandonedClusterIsSweptByTheNext(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, folderPrefix+"1")
	for _, path := range []string{dir, filepath.Join(dir, "kubelet")} {
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := sweepAbandoned(parent); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Fatalf("one that is just being made was swept: %v", err)
	}
	lock, err := lockFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := sweepAbandoned(parent); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Fatalf("one that runs was swept: %v", err)
	}
	lock.Close()
	if err := sweepAbandoned(parent); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("it is still there (%v)", err)
	}
}
