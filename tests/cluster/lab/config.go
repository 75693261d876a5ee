// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"

	"sigs.k8s.io/yaml"
)

const (
	containerdSocket = inside + "/containerd/containerd.sock"
	pauseImage       = "localhost/pause:1"
	// Image holds Debian's busybox, for pods of tests.
	Image = "localhost/busybox:1"
)

func kubeconfig(user string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://%[1]s:443", certificate-authority: %[2]s/pki/ca.crt}}]
users: [{name: u, user: {client-certificate: %[2]s/pki/%[3]s.crt, client-key: %[2]s/pki/%[3]s.key}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`, serviceIP, inside, user)
}

func containerdConfig(cni string) string {
	// restrict_oom_score_adj: where CAP_SYS_RESOURCE is missing a container may not lower its score,
	// and runc ends with "can't get final child's PID from pipe: EOF".
	return fmt.Sprintf(`version = 3
root = "%[1]s/containerd/root"
state = "%[1]s/containerd/state"
[grpc]
  address = "%[2]s"
[plugins.'io.containerd.cri.v1.runtime']
  enable_cdi = true
  restrict_oom_score_adj = true
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = 'io.containerd.runc.v2'
[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ['%[3]s']
  conf_dir = '%[1]s/net.d'
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = "%[4]s"
`, inside, containerdSocket, cni, pauseImage)
}

const network = `{"cniVersion": "1.0.0", "name": "pods", "plugins": [
  {"type": "bridge", "bridge": "cni0", "isGateway": true,
   "ipam": {"type": "host-local", "dataDir": "` + inside + `/ipam",
            "ranges": [[{"subnet": "10.244.0.0/22"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
`

// Its own values, then the test's. nodeStatusUpdateFrequency: allocatable follows within a second.
func (c *Cluster) kubeletConfig() (string, error) {
	values := map[string]any{}
	base := fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: %[1]s/pki/ca.crt}}
authorization: {mode: Webhook}
tlsCertFile: %[1]s/pki/kubelet.crt
tlsPrivateKeyFile: %[1]s/pki/kubelet.key
containerRuntimeEndpoint: unix://%[2]s
podLogsDir: %[1]s/podlogs
volumePluginDir: %[1]s/volume-plugins
resolvConf: ""
failCgroupV1: false
failSwapOn: false
cgroupDriver: cgroupfs
cgroupRoot: %[3]s
enforceNodeAllocatable: []
evictionHard: {memory.available: "10Mi", nodefs.available: "1%%", imagefs.available: "1%%",
               nodefs.inodesFree: "1%%", imagefs.inodesFree: "1%%"}
imageGCHighThresholdPercent: 100
maxPods: 500
nodeStatusUpdateFrequency: 1s
kubeAPIQPS: 200
kubeAPIBurst: 400
eventRecordQPS: 0
`, inside, containerdSocket, groupOf(c.dir))
	for _, text := range []string{base, c.options.KubeletConfig} {
		if err := yaml.Unmarshal([]byte(text), &values); err != nil {
			return "", fmt.Errorf("kubelet's configuration: %w\n%s", err, text)
		}
	}
	text, err := yaml.Marshal(values)
	return string(text), err
}

// agentConfig is what a user would write for this node, and what the test adds: dotted keys
// ("fabric.mode") and YAML values.
func (c *Cluster) agentConfig() (string, error) {
	values := map[string]any{}
	given := map[string]string{
		"consumer":       c.options.Consumer,
		"fabric.mode":    "advise",
		"fabric.address": "unix:/run/nvidia-fabricmanager/socket",
		"fabric.library": within("sim/lib/libnvfm.so.1"),
		"paths.nvml":     within("sim/lib/libnvidia-ml.so.1"),
		"paths.hostRoot": within("sim/root"),
	}
	for key, value := range c.options.AgentConfig {
		given[key] = value
	}
	for key, text := range given {
		var value any
		if err := yaml.Unmarshal([]byte(text), &value); err != nil {
			return "", fmt.Errorf("AgentConfig: %s: %w", key, err)
		}
		section := values
		parts := strings.Split(key, ".")
		for _, part := range parts[:len(parts)-1] {
			if section[part] == nil {
				section[part] = map[string]any{}
			}
			section = section[part].(map[string]any)
		}
		if text == "off" || text == "on" { // YAML 1.1 would make a truth value of it
			value = text
		}
		section[parts[len(parts)-1]] = value
	}
	text, err := yaml.Marshal(values)
	return string(text), err
}

func (c *Cluster) writeConfigs() error {
	kubelet, err := c.kubeletConfig()
	if err != nil {
		return err
	}
	problems := []error{c.writePKI(), c.writeHost(), c.writeImage(), c.writeAgentConfig()}
	for name, text := range map[string]string{
		"net.d/10-pods.conflist": network,
		"containerd.toml":        containerdConfig(c.programs.CNI),
		"kubelet.yaml":           kubelet,
	} {
		problems = append(problems, os.WriteFile(c.Path(name), []byte(text), 0o600))
	}
	return errors.Join(problems...)
}

func (c *Cluster) writeAgentConfig() error {
	text, err := c.agentConfig()
	if err != nil {
		return err
	}
	return os.WriteFile(c.Path("agent.yaml"), []byte(text), 0o600)
}

// ConfigureAgent changes the agent's configuration, as AgentConfig does; an agent that is started after
// it has it.
func (c *Cluster) ConfigureAgent(changes map[string]string) {
	config := maps.Clone(c.options.AgentConfig) // the test's own, perhaps another one's too
	if config == nil {
		config = map[string]string{}
	}
	maps.Copy(config, changes)
	c.options.AgentConfig = config
	c.check(c.writeAgentConfig())
}

// writeHost makes what the namespaces need, whatever runs in them.
func (c *Cluster) writeHost() error {
	// Without an entry each look-up of the own name waits for a resolver that is not there.
	hosts := "127.0.0.1 localhost\n" + nodeIP + " " + nodeName + "\n"
	return errors.Join(c.writeNUMA(), os.WriteFile(c.Path("hosts"), []byte(hosts), 0o644),
		os.WriteFile(c.Path("resolv.conf"), nil, 0o644))
}
