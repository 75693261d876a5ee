// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

func (c *Cluster) describeComponents() {
	program := func(name, line string) *Component {
		argv := append([]string{c.programs.Program(name)}, strings.Fields(line)...)
		return c.Component(strings.TrimPrefix(name, "kube-"), argv...)
	}
	pki := within("pki")
	c.Etcd = program("etcd", "--data-dir "+within("etcd")+" --unsafe-no-fsync"+
		" --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379"+
		" --listen-peer-urls http://127.0.0.1:2380")
	c.APIServer = program("kube-apiserver", "--etcd-servers http://127.0.0.1:2379"+
		" --secure-port 443 --bind-address 0.0.0.0 --advertise-address "+nodeIP+
		" --service-cluster-ip-range 10.96.0.0/16 --allow-privileged=true"+
		" --authorization-mode Node,RBAC --enable-admission-plugins NodeRestriction"+
		" --client-ca-file "+pki+"/ca.crt"+
		" --tls-cert-file "+pki+"/apiserver.crt --tls-private-key-file "+pki+"/apiserver.key"+
		" --service-account-issuer https://kubernetes.default.svc"+
		" --service-account-key-file "+pki+"/sa.pub --service-account-signing-key-file "+pki+"/sa.key"+
		" --kubelet-client-certificate "+pki+"/admin.crt --kubelet-client-key "+pki+"/admin.key")
	c.APIServer.Argv = append(c.APIServer.Argv, c.options.APIServerFlags...)
	// Once a period it takes the taint off a node that has become Ready: the start waits for that. At
	// its usual rate of requests it makes accounts for its controllers for four seconds.
	c.Controllers = program("kube-controller-manager", "--leader-elect=false --node-monitor-period=500ms"+
		" --kube-api-qps=500 --kube-api-burst=1000"+
		" --kubeconfig "+within("controllers.kubeconfig")+" --use-service-account-credentials"+
		" --service-account-private-key-file "+pki+"/sa.key --root-ca-file "+pki+"/ca.crt")
	c.Scheduler = program("kube-scheduler",
		"--leader-elect=false --kubeconfig "+within("scheduler.kubeconfig"))
	c.Containerd = program("containerd", "-c "+within("containerd.toml"))
	c.Kubelet = program("kubelet", "--config "+within("kubelet.yaml")+
		" --kubeconfig "+within("kubelet.kubeconfig")+" --hostname-override "+nodeName+" -v 2")
	sim := filepath.Join(c.options.SwitchyardBin, "switchyard-sim")
	c.Hardware = c.Component("hardware", append([]string{sim, "--dir", within("sim"), "hardware",
		"--board", c.options.Board, "--tcp", "127.0.0.1:6666", "--uevents"}, c.options.Hardware...)...)
	c.Agent = c.Component("agent", filepath.Join(c.options.SwitchyardBin, "switchyard"), "agent",
		"--config", within("agent.yaml"))
}

// bringUp starts everything in the order in which it is needed, what can go side by side at once.
func (c *Cluster) bringUp() error {
	for _, p := range []*Component{c.Etcd, c.APIServer, c.Containerd, c.Hardware} {
		if err := p.start(); err != nil {
			return err
		}
	}
	var group errgroup.Group
	group.Go(c.importImage)
	group.Go(c.bringUpDevices)
	group.Go(c.bringUpControlPlane)
	if err := group.Wait(); err != nil {
		return err
	}
	// Only now: kubelet's set-up of its CSINode gives up, and the node stays NotReady, if the API
	// server does not answer.
	if err := c.Kubelet.start(); err != nil {
		return err
	}
	if !c.options.NoAgent {
		if err := c.Agent.start(); err != nil {
			return err
		}
	}
	group.Go(c.waitNodeReady)
	group.Go(c.waitServiceAccount)
	return group.Wait()
}

func (c *Cluster) importImage() error {
	if _, err := c.Containerd.waitLog("containerd successfully booted"); err != nil {
		return err
	}
	_, err := c.run(c.programs.Program("ctr"), "-a", containerdSocket, "-n", "k8s.io",
		"images", "import", within("image.tar"))
	return err
}

// bringUpDevices puts the device nodes that the agent will name where container runtimes look.
func (c *Cluster) bringUpDevices() error {
	if _, err := c.Hardware.waitLog("hardware of "); err != nil {
		return err
	}
	_, err := c.ask(request{Op: "bind", From: within("sim/root/dev/vfio"), To: "/dev/vfio"})
	if err != nil {
		return err
	}
	status, err := c.board()
	if err != nil || !status.IOMMUFD {
		return err
	}
	_, err = c.ask(request{Op: "bind", From: within("sim/root/dev/iommu"), To: "/dev/iommu"})
	return err
}

func (c *Cluster) bringUpControlPlane() error {
	if _, err := c.APIServer.waitLog("Serving securely on"); err != nil {
		return err
	}
	// Not before: the controller manager gives up after ten seconds without.
	if err := c.waitAPIServer(); err != nil {
		return err
	}
	for _, p := range []*Component{c.Controllers, c.Scheduler} {
		if err := p.start(); err != nil {
			return err
		}
	}
	return nil
}

// waitAPIServer asks until it is ready: there is nothing to watch before.
func (c *Cluster) waitAPIServer() error {
	ctx, cancel := c.patience()
	defer cancel()
	for {
		err := c.Client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
		if err == nil {
			return nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("the API server is not ready (%w): %w", err, cause(ctx))
		}
	}
}

// Exec runs a command inside the namespaces and returns what it wrote; a failure ends the test.
func (c *Cluster) Exec(argv ...string) string {
	out, err := c.run(argv...)
	c.check(err)
	return out
}

// run is Exec, with both streams in the error.
func (c *Cluster) run(argv ...string) (string, error) {
	ctx, cancel := c.patience()
	defer cancel()
	command := exec.CommandContext(ctx, "nsenter", c.nsenter(argv...)...)
	command.Env = c.environment()
	var failed strings.Builder
	command.Stderr = &failed
	out, err := command.Output()
	if err != nil {
		return string(out), fmt.Errorf("%s: %w\n%s%s", strings.Join(argv, " "), err, out, failed.String())
	}
	return string(out), nil
}

func (c *Cluster) nsenter(argv ...string) []string {
	return append([]string{
		"--target", fmt.Sprint(c.initPID), "--mount", "--net", "--pid", "--uts", "--ipc", "--",
	}, argv...)
}

func (c *Cluster) environment() []string {
	return []string{"PATH=" + c.path(), "HOME=" + inside, "KUBECONFIG=" + within("admin.kubeconfig"),
		"CONTAINERD_ADDRESS=" + containerdSocket, "CONTAINERD_NAMESPACE=k8s.io", "TERM=dumb"}
}

// Kubectl runs kubectl as administrator.
func (c *Cluster) Kubectl(args ...string) string {
	return c.Exec(append([]string{c.programs.Program("kubectl")}, args...)...)
}
