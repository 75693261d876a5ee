// SPDX-License-Identifier: Apache-2.0

// Package components builds what a cluster runs (Kubernetes, etcd, containerd, the CNI plugins) from
// the Go modules that go.mod and runtime/go.mod pin, once for each state of their sources, into the
// user's cache folder. Find never builds; Build is for one process at a time and waits for another.
package components

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Set holds the folders of built programs.
type Set struct {
	Bin string // kube-apiserver, kubelet, kubectl, etcd, containerd, ...
	CNI string // bridge, loopback, host-local
}

// Program is the path of a program in Bin.
func (s Set) Program(name string) string { return filepath.Join(s.Bin, name) }

// Of Kubernetes, links to one program; see kube/main.go.
var kubernetes = []string{
	"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kubectl",
}

// sources decide what is built; their content names the folder in the cache.
var sources = []string{
	"go.mod", "go.sum", "kube/main.go", "runtime/go.mod", "runtime/go.sum", "runtime/tools.go",
	"components/build.go",
}

const module = "module switchyard/tests/cluster\n"

// SourceFolder is tests/cluster, found upwards from the working folder.
func SourceFolder() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for folder := start; ; folder = filepath.Dir(folder) {
		for _, candidate := range []string{folder, filepath.Join(folder, "tests", "cluster")} {
			text, err := os.ReadFile(filepath.Join(candidate, "go.mod"))
			if err == nil && strings.HasPrefix(string(text), module) {
				return candidate, nil
			}
		}
		if folder == filepath.Dir(folder) {
			return "", fmt.Errorf("%s: not in Switchyard's source tree; run it from there", start)
		}
	}
}

// Find returns what Build has built from the present sources.
func Find() (Set, error) {
	folder, err := cacheFolder()
	if err != nil {
		return Set{}, err
	}
	if _, err := os.Stat(filepath.Join(folder, complete)); err != nil {
		return Set{}, fmt.Errorf("%s: the cluster's programs are not built from these sources "+
			"(%w); run scripts/cluster build", folder, err)
	}
	return setIn(folder), nil
}

// complete is written last: a folder without it is the rest of an interrupted build.
const complete = "complete"

func setIn(folder string) Set {
	return Set{Bin: filepath.Join(folder, "bin"), CNI: filepath.Join(folder, "cni")}
}

// Root is the folder with one sub-folder for each state of the sources.
func Root() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache folder (%w); set XDG_CACHE_HOME or HOME", err)
	}
	return filepath.Join(cache, "switchyard-cluster"), nil
}

func cacheFolder() (string, error) {
	source, err := SourceFolder()
	if err != nil {
		return "", err
	}
	root, err := Root()
	if err != nil {
		return "", err
	}
	sum, err := hash(source)
	return filepath.Join(root, sum), err
}

func hash(source string) (string, error) {
	sum := sha256.New()
	// The toolchain that built this program is the one that builds the components.
	fmt.Fprintf(sum, "%s %s\n", runtime.Version(), runtime.GOARCH)
	var problems []error
	for _, name := range sources {
		file, err := os.Open(filepath.Join(source, name))
		if err != nil {
			problems = append(problems, err)
			continue
		}
		fmt.Fprintf(sum, "%s\n", name)
		_, err = io.Copy(sum, file)
		problems = append(problems, err, file.Close())
	}
	return fmt.Sprintf("%x", sum.Sum(nil)[:8]), errors.Join(problems...)
}
