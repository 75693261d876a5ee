// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// setUpMounts gives the cluster the folders that are fixed on a node. Nothing is made on the machine:
// mount points are made in file systems of the cluster's own, over /run, /var/lib, /var/log and /dev.
func setUpMounts(dir string) error {
	mounter := &mounter{}
	mounter.mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	mounter.mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	// Opened before /run is covered: the folder may be below it.
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer folder.Close()
	mounter.tmpfs("/run")
	mounter.mkdir(inside)
	mounter.bind(fmt.Sprintf("/proc/self/fd/%d", folder.Fd()), inside)
	mounter.overlay("/var/lib")
	mounter.tmpfs("/var/log") // kubelet links each container's log there
	mounter.devices()
	mounter.tmpfs(within("sim/root"))
	for _, b := range bound {
		mounter.mkdir(within(b.from))
		mounter.mkdir(b.to)
		mounter.bind(within(b.from), b.to)
	}
	mounter.varRun()
	mounter.file("hosts", "/etc/hosts")
	mounter.file("resolv.conf", "/etc/resolv.conf")
	mounter.tunables()
	return mounter.err
}

// mounter stops at its first error.
type mounter struct{ err error }

func (m *mounter) mount(from, to, kind string, flags uintptr, options string) {
	if m.err != nil {
		return
	}
	if err := unix.Mount(from, to, kind, flags, options); err != nil {
		m.err = fmt.Errorf("mounting %s %s on %s: %w", kind, from, to, err)
	}
}

func (m *mounter) mkdir(path string) {
	if m.err == nil {
		m.err = os.MkdirAll(path, 0o755)
	}
}

func (m *mounter) bind(from, to string)  { m.mount(from, to, "", unix.MS_BIND, "") }
func (m *mounter) tmpfs(path string)     { m.mount("tmpfs", path, "tmpfs", unix.MS_NOSUID, "mode=0755") }
func (m *mounter) symlink(to, at string) { m.keep(os.Symlink(to, at)) }

func (m *mounter) keep(err error) {
	if m.err == nil {
		m.err = err
	}
}

// overlay keeps what is in a folder and puts what is made there into memory.
func (m *mounter) overlay(path string) {
	upper := filepath.Join("/run/overlay", path)
	m.mkdir(upper + "/upper")
	m.mkdir(upper + "/work")
	m.mount("overlay", path, "overlay", unix.MS_NOSUID,
		fmt.Sprintf("lowerdir=%s,upperdir=%s/upper,workdir=%s/work", path, upper, upper))
}

// devices makes a /dev without the machine's devices, but for those that every container has too.
func (m *mounter) devices() {
	m.tmpfs("/dev")
	for _, node := range []struct {
		name         string
		major, minor uint32
	}{
		{"null", 1, 3}, {"zero", 1, 5}, {"full", 1, 7}, {"random", 1, 8}, {"urandom", 1, 9},
		{"kmsg", 1, 11}, {"tty", 5, 0},
	} {
		if m.err == nil {
			path := filepath.Join("/dev", node.name)
			m.err = unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(node.major, node.minor)))
			m.keep(os.Chmod(path, 0o666))
		}
	}
	for _, folder := range []string{"pts", "shm", "mqueue"} {
		m.mkdir("/dev/" + folder)
	}
	m.mount("devpts", "/dev/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666")
	m.mount("tmpfs", "/dev/shm", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "")
	m.symlink("pts/ptmx", "/dev/ptmx")
	m.symlink("/proc/self/fd", "/dev/fd")
	m.symlink("/proc/self/fd/0", "/dev/stdin")
	m.symlink("/proc/self/fd/1", "/dev/stdout")
	m.symlink("/proc/self/fd/2", "/dev/stderr")
}

// varRun: where /var/run is no link to /run, CDI's folder is found by its other name too.
func (m *mounter) varRun() {
	if m.err != nil {
		return
	}
	if to, err := filepath.EvalSymlinks("/var/run"); err != nil || to != "/run" {
		m.err = fmt.Errorf("/var/run: must be a link to /run (leads to %q, %w)", to, err)
	}
}

// file binds one of the cluster's files over the machine's. Where that leads nowhere inside, no
// look-up waits for it either.
func (m *mounter) file(from, to string) {
	if m.err != nil {
		return
	}
	if _, err := os.Stat(to); errors.Is(err, os.ErrNotExist) {
		return
	}
	m.bind(within(from), to)
}

// tunables: kubelet sets these for the whole machine; here it finds what it wants.
func (m *mounter) tunables() {
	m.mkdir(within("sysctl"))
	for name, value := range map[string]string{
		"vm/overcommit_memory": "1", "vm/panic_on_oom": "0",
		"kernel/panic": "10", "kernel/panic_on_oops": "1",
		"kernel/keys/root_maxkeys": "1000000", "kernel/keys/root_maxbytes": "25000000",
	} {
		file := within("sysctl", filepath.Base(name))
		m.keep(os.WriteFile(file, []byte(value+"\n"), 0o644))
		if _, err := os.Stat("/proc/sys/" + name); err == nil {
			m.bind(file, "/proc/sys/"+name)
		}
	}
}
