// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"tags.cncf.io/container-device-interface/pkg/cdi"
	"tags.cncf.io/container-device-interface/pkg/parser"

	"switchyard/tests/cluster/lab"
)

const pgpu = "nvidia.com/pgpu"

// Kata's shim resolves what PodResources names in the CDI files: both are read here as it reads them,
// the files with the CDI project's own code.
func TestKataFindsAPodsDevicesInValidCDIFiles(t *testing.T) {
	for _, backend := range []string{"off", "on"} {
		t.Run("iommufd "+backend, func(t *testing.T) {
			c := lab.Start(t, lab.Options{
				Consumer: "kata", Hardware: []string{"--iommufd", backend},
			})
			c.WaitAllocatable(pgpu, 8)
			files := checkCDIFiles(t, c)

			c.Admitted(lab.Pod("vm", lab.Container("kata", pgpu, 2)))
			ids := c.Devices("vm")["kata"]
			if len(ids) != 2 {
				t.Fatalf("kubelet gave %v, want two devices", ids)
			}
			var fromCDI []string
			for _, id := range ids {
				name := parser.QualifiedName("nvidia.com", "pgpu", id)
				device := files.GetDevice(name)
				if device == nil {
					t.Fatalf("%s: no such device in the CDI files, which have %v", name, files.ListDevices())
				}
				for _, node := range device.ContainerEdits.DeviceNodes {
					fromCDI = append(fromCDI, node.Path)
				}
			}
			expectKataNodes(t, c.Board(), backend == "on", ids, fromCDI)
			if backend == "off" { // no device's own: Allocate names it, CDI does not
				fromCDI = append(fromCDI, anyPlace)
			}
			view := c.View("vm", "kata")
			slices.Sort(fromCDI)
			if got := view.Paths(); !slices.Equal(got, fromCDI) {
				t.Errorf("the container has %v, CDI says %v", got, fromCDI)
			}
			expectUsable(t, view)
		})
	}
}

func checkCDIFiles(t *testing.T, c *lab.Cluster) *cdi.Cache {
	t.Helper()
	paths, err := filepath.Glob(c.Path("cdi", "*"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no CDI files (%v)", err)
	}
	for _, path := range paths {
		spec, err := cdi.ReadSpec(path, 0)
		if err != nil {
			t.Errorf("%s: %v", path, err)
		} else if spec.Version != "0.5.0" {
			t.Errorf("%s: cdiVersion %s, want what Kata's own plugin writes, 0.5.0", path, spec.Version)
		}
	}
	cache, err := cdi.NewCache(cdi.WithSpecDirs(c.Path("cdi")), cdi.WithAutoRefresh(false))
	if err != nil {
		t.Fatal(err)
	}
	for path, problems := range cache.GetErrors() {
		t.Errorf("%s: %v", path, problems)
	}
	if devices := cache.ListDevices(); len(devices) != 8 {
		t.Errorf("CDI devices %v, want eight", devices)
	}
	return cache
}

// The id is the group's number or, with iommufd, the N of vfioN; each device has its one node, in the
// order of the ids.
func expectKataNodes(t *testing.T, board lab.Board, iommufd bool, ids, nodes []string) {
	t.Helper()
	var want []string
	for _, id := range ids {
		found := false
		for _, gpu := range board.GPUs {
			number, folder := gpu.IOMMUGroup, "/dev/vfio/"
			if iommufd {
				number, folder = *gpu.VFIO, "/dev/vfio/devices/vfio"
			}
			if fmt.Sprint(number) == id {
				want = append(want, folder+id)
				found = true
			}
		}
		if !found {
			t.Errorf("device id %s: no GPU has that number", id)
		}
	}
	if !slices.Equal(nodes, want) {
		t.Errorf("CDI's nodes %v, want exactly %v", nodes, want)
	}
}
