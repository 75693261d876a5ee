// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// setUpNetwork makes a network that leads nowhere: kubelet wants a default route and an address that
// is not loopback's, and pods reach the API server by its service address.
func setUpNetwork() error {
	for _, line := range []string{
		"link set lo up",
		"addr add " + serviceIP + "/32 dev lo",
		"link add d0 type veth peer name d1",
		"addr add " + nodeIP + "/24 dev d0",
		"link set d0 up",
		"link set d1 up",
		"route add default via 10.250.0.254 dev d0",
	} {
		if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s", line, err, out)
		}
	}
	return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1\n"), 0)
}
