// SPDX-License-Identifier: Apache-2.0

package components

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	containerd = "github.com/containerd/containerd/v2/cmd/"
	cni        = "github.com/containernetworking/plugins/plugins/"
	version    = "k8s.io/component-base/version."
)

type step struct {
	name   string
	folder string // of the module, below the source folder
	args   []string
	to     string // a folder or a program, below the cache folder
	what   []string
}

// Without its version every component calls itself v0.0.0-master, and the API server refuses some.
var steps = []step{
	{"etcd", "runtime", nil, "bin/etcd", []string{"go.etcd.io/etcd/server/v3"}},
	{"containerd", "runtime", []string{"-tags", "no_btrfs no_devmapper no_zfs"}, "bin/",
		[]string{containerd + "containerd", containerd + "containerd-shim-runc-v2", containerd + "ctr"}},
	{"CNI plugins", "runtime", nil, "cni/",
		[]string{cni + "main/bridge", cni + "main/loopback", cni + "ipam/host-local"}},
	{"Kubernetes", ".", []string{"-ldflags", "-s -w -X " + version + "gitVersion=v1.37.2 -X " +
		version + "gitMajor=1 -X " + version + "gitMinor=37"}, "bin/kube", []string{"./kube"}},
}

// Build makes what is missing and says on `out` how far it is. The first time it takes 10 to 15
// minutes on two cores, later (another go.mod, the same versions) about one.
func Build(ctx context.Context, out io.Writer) (Set, error) {
	if set, err := Find(); err == nil {
		return set, nil
	}
	source, err := SourceFolder()
	if err != nil {
		return Set{}, err
	}
	folder, err := cacheFolder()
	if err != nil {
		return Set{}, err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return Set{}, err
	}
	unlock, err := lock(filepath.Dir(folder), out)
	if err != nil {
		return Set{}, err
	}
	defer unlock()
	if set, err := Find(); err == nil { // by the one that we waited for
		return set, nil
	}
	fmt.Fprintln(out, "cluster: building Kubernetes, etcd, containerd and CNI plugins; the first time "+
		"this takes 10 to 15 minutes on two cores")
	for _, s := range steps {
		if err := s.run(ctx, source, folder, out); err != nil {
			return Set{}, err
		}
	}
	for _, name := range kubernetes {
		link := filepath.Join(folder, "bin", name)
		if err := os.Symlink("kube", link); err != nil && !os.IsExist(err) {
			return Set{}, err
		}
	}
	return setIn(folder), os.WriteFile(filepath.Join(folder, complete), nil, 0o644)
}

func (s step) run(ctx context.Context, source, folder string, out io.Writer) error {
	ldflags := []string{"-ldflags", "-s -w"}
	if s.args != nil && s.args[0] == "-ldflags" {
		ldflags = nil
	}
	args := append([]string{"build", "-v", "-o", filepath.Join(folder, s.to)}, ldflags...)
	args = append(append(args, s.args...), s.what...)
	command := exec.CommandContext(ctx, filepath.Join(source, "go-run"), args...)
	command.Dir = filepath.Join(source, s.folder)
	if strings.HasSuffix(s.to, "/") {
		if err := os.MkdirAll(filepath.Join(folder, s.to), 0o755); err != nil {
			return err
		}
	}
	var said bytes.Buffer
	progress := startProgress(out, s.name, &said)
	command.Stderr = progress
	err := command.Run()
	progress.stop()
	if err != nil {
		return fmt.Errorf("building %s: %w\n%s", s.name, err, said.String())
	}
	return nil
}

// lock keeps two builds from doing the same work twice.
func lock(root string, out io.Writer) (func(), error) {
	file, err := os.OpenFile(filepath.Join(root, "build.lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	fd := int(file.Fd())
	if unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) != nil {
		fmt.Fprintln(out, "cluster: another process builds; waiting for it")
		if err := unix.Flock(fd, unix.LOCK_EX); err != nil {
			return nil, fmt.Errorf("locking %s: %w", file.Name(), err)
		}
	}
	return func() { _ = file.Close() }, nil
}
