// SPDX-License-Identifier: Apache-2.0

package lab

import "path/filepath"

// Inside the cluster's namespaces everything that is its own is below this folder, whatever the
// folder is called outside: configuration files name only these paths, and sockets stay short.
const inside = "/run/cluster"

const (
	nodeName  = "n1"
	nodeIP    = "10.250.0.1"
	serviceIP = "10.96.0.1" // of the API server, as pods know it; on lo, which takes kube-proxy's place
)

// Folders below the cluster's folder that are bound to where programs look for them.
var bound = []struct{ from, to string }{
	{"kubelet", "/var/lib/kubelet"}, // the device-plugin folder ignores kubelet's --root-dir
	{"state", "/var/lib/switchyard"},
	{"sim/fm", "/run/nvidia-fabricmanager"},
	{"socket", "/run/switchyard"},
	{"cdi", "/run/cdi"},
	{"numa", "/sys/devices/system/node"},
}

// Folders of the components, with no other place in the file system.
var folders = []string{
	"log", "pki", "etcd", "net.d", "containerd", "sim/root",
	"kubelet/device-plugins", // on a node it is there before kubelet; an agent may be quicker
}

// Path is where a file of the cluster (kubelet/pod-resources/kubelet.sock) is, seen from outside.
func (c *Cluster) Path(parts ...string) string {
	return filepath.Join(append([]string{c.dir}, parts...)...)
}

func within(parts ...string) string {
	return filepath.Join(append([]string{inside}, parts...)...)
}
