// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

const controlGroups = "/sys/fs/cgroup"

// hierarchies are the mounted ones: each controller's (v1) or the only one (v2).
func hierarchies() ([]string, error) {
	var status unix.Statfs_t
	if err := unix.Statfs(controlGroups, &status); err != nil {
		return nil, err
	}
	if status.Type == unix.CGROUP2_SUPER_MAGIC {
		return []string{controlGroups}, nil
	}
	entries, err := os.ReadDir(controlGroups)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, entry := range entries {
		if entry.IsDir() { // "cpu,cpuacct" has links beside it
			found = append(found, filepath.Join(controlGroups, entry.Name()))
		}
	}
	return found, nil
}

// groupOf is the cluster's own control group, with its pods below it: two clusters would share
// kubelet's /kubepods.
func groupOf(dir string) string { return "/" + filepath.Base(dir) }

func makeControlGroups(group string) error {
	all, err := hierarchies()
	if err != nil {
		return err
	}
	for _, hierarchy := range all {
		if err := os.MkdirAll(filepath.Join(hierarchy, group), 0o755); err != nil {
			return err
		}
	}
	return nil
}

func removeControlGroups(dir string) error {
	all, err := hierarchies()
	if err != nil {
		return err
	}
	var problems []error
	for _, hierarchy := range all {
		var groups []string
		err := filepath.WalkDir(filepath.Join(hierarchy, groupOf(dir)),
			func(path string, entry fs.DirEntry, err error) error {
				if err == nil && entry.IsDir() {
					groups = append(groups, path)
				}
				if errors.Is(err, fs.ErrNotExist) {
					return nil
				}
				return err
			})
		problems = append(problems, err)
		slices.Reverse(groups) // children first
		for _, group := range groups {
			if err := unix.Rmdir(group); err != nil && !errors.Is(err, unix.ENOENT) {
				problems = append(problems, &fs.PathError{Op: "rmdir", Path: group, Err: err})
			}
		}
	}
	return errors.Join(problems...)
}
