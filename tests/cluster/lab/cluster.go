// SPDX-License-Identifier: Apache-2.0

// Package lab starts a real Kubernetes with one node on this machine: etcd, API server, controller
// manager, scheduler, kubelet, containerd and runc, with the simulated hardware of switchyard-sim and
// the agent, all in mount, network, PID, UTS and IPC namespaces of its own. Clusters run beside each
// other, and leave nothing on the machine, however the process that started them ends.
//
// A Cluster belongs to one goroutine. Functions that can fail end the test.
package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"

	"switchyard/tests/cluster/components"
)

// Options of a cluster; each may be left out.
type Options struct {
	Board    string   // of switchyard-sim; default hgx-h100
	Hardware []string // more flags of `switchyard-sim hardware`: "--iommufd", "on"
	Consumer string   // of the agent: kubevirt (the default) or kata

	// More of the agent's configuration: "fabric.mode": "off".
	AgentConfig map[string]string
	NoAgent     bool
	// More of kubelet's configuration, as YAML; a key of the cluster's own is replaced.
	KubeletConfig string
	// More flags of the API server.
	APIServerFlags []string

	// The folder of switchyard and switchyard-sim; default $CLUSTER_SWITCHYARD_BIN, else
	// build/release/bin of the source tree.
	SwitchyardBin string
	// The cluster's folder; default: a new one in the folder for temporary files.
	Dir string
}

// Patience bounds every wait: only a failure takes that long, also on a machine that is busy.
const Patience = 2 * time.Minute

const folderPrefix = "switchyard-cluster-"

// Cluster is a running one.
type Cluster struct {
	// The administrator's; through a tunnel, since the API server is in another network.
	Client kubernetes.Interface

	Etcd, APIServer, Controllers, Scheduler, Containerd, Kubelet *Component
	// Hardware is the simulated board with its Fabric Manager; see Sim for its faults.
	Hardware *Component
	Agent    *Component

	options  Options
	dir      string
	programs components.Set
	ctx      context.Context
	lose     context.CancelCauseFunc // the cluster is of no use any more
	fatal    func(error)

	authority []byte
	admin     identity
	initPID   int
	lifeline  *os.File
	report    *json.Decoder // of the keeper
}

// New returns with the node Ready. `fatal` is called for what fails later, and does not return. On an
// error the cluster is still to be closed.
func New(options Options, fatal func(error)) (*Cluster, error) {
	c := newCluster(options, fatal)
	for _, step := range []func() error{
		c.findPrograms, c.makeFolder, c.writeConfigs, c.startKeeper, c.connect,
	} {
		if err := step(); err != nil {
			return c, err
		}
	}
	c.describeComponents()
	return c, c.bringUp()
}

func newCluster(options Options, fatal func(error)) *Cluster {
	c := &Cluster{options: options, fatal: fatal}
	c.ctx, c.lose = context.WithCancelCause(context.Background())
	return c
}

func (c *Cluster) findPrograms() (err error) {
	if os.Getuid() != 0 {
		return errors.New("a cluster needs root: it makes namespaces, mounts and control groups")
	}
	for _, program := range []string{"runc", "ip", "nsenter", "setsid"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("%w; run scripts/setup", err)
		}
	}
	if c.programs, err = components.Find(); err != nil {
		return err
	}
	o := &c.options
	if o.SwitchyardBin == "" {
		o.SwitchyardBin = os.Getenv("CLUSTER_SWITCHYARD_BIN")
	}
	if o.SwitchyardBin == "" {
		source, err := components.SourceFolder()
		if err != nil {
			return err
		}
		o.SwitchyardBin = filepath.Join(source, "../../build/release/bin")
	}
	if o.SwitchyardBin, err = filepath.Abs(o.SwitchyardBin); err != nil {
		return err
	}
	for _, program := range []string{"switchyard", "switchyard-sim"} {
		if _, err := os.Stat(filepath.Join(o.SwitchyardBin, program)); err != nil {
			return fmt.Errorf("%w; build it: cmake --preset release && cmake --build --preset release", err)
		}
	}
	if o.Board == "" {
		o.Board = "hgx-h100"
	}
	if o.Consumer == "" {
		o.Consumer = "kubevirt"
	}
	return nil
}

// A socket's path has at most 107 bytes, and kubelet's are below the folder.
const maxDir = 60

func (c *Cluster) makeFolder() (err error) {
	if err := sweepAbandoned(os.TempDir()); err != nil {
		return err
	}
	if c.options.Dir != "" {
		c.dir, err = filepath.Abs(c.options.Dir)
		if err == nil {
			err = os.Mkdir(c.dir, 0o700)
		}
	} else {
		c.dir, err = os.MkdirTemp("", folderPrefix)
	}
	if err != nil {
		return err
	}
	if len(c.dir) > maxDir {
		return fmt.Errorf("%s: has more than %d bytes, and sockets are below it; set TMPDIR to a "+
			"shorter folder", c.dir, maxDir)
	}
	for _, name := range folders {
		if err := os.MkdirAll(c.Path(name), 0o755); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) startKeeper() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	theirs, lifeline, err := os.Pipe()
	if err != nil {
		return err
	}
	defer theirs.Close()
	c.lifeline = lifeline
	report, said, err := os.Pipe()
	if err != nil {
		return err
	}
	defer said.Close()
	c.report = json.NewDecoder(report)
	// --fork: no child of ours, so that what ends a test with all its children leaves the keeper.
	command := exec.Command("setsid", "--fork", self, c.dir)
	command.Env = append(os.Environ(), roleVariable+"="+roleKeeper)
	command.ExtraFiles = []*os.File{theirs, said}
	log, err := os.Create(c.Path("log/keeper.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	command.Stderr = log // not ours: who reads that to its end would wait for the keeper's
	if err := command.Run(); err != nil {
		return fmt.Errorf("starting the keeper: %w", err)
	}
	said.Close()
	var first keeperReport
	if err := c.report.Decode(&first); err != nil {
		return fmt.Errorf("the keeper ended: %w", err)
	}
	c.initPID = first.InitPID
	if first.Problem != "" {
		return errors.New(first.Problem)
	}
	return nil
}

// Close ends the cluster and returns when nothing is left of it.
func (c *Cluster) Close() error {
	if c.lifeline == nil { // not started; the folder is all there is
		if c.dir == "" {
			return nil
		}
		return os.RemoveAll(c.dir)
	}
	c.lose(errors.New("the cluster is being closed"))
	c.lifeline.Close()
	for {
		var more keeperReport
		if err := c.report.Decode(&more); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return fmt.Errorf("the keeper: %w", err)
		}
	}
	if _, err := os.Stat(c.dir); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s: the keeper left it behind (%v)", c.dir, err)
	}
	return nil
}

func (c *Cluster) path() string {
	return strings.Join([]string{
		c.programs.Bin, c.options.SwitchyardBin, "/usr/sbin:/usr/bin:/sbin:/bin",
	}, ":")
}

// check ends the test.
func (c *Cluster) check(err error) {
	if err != nil {
		c.fatal(err)
	}
}

// patience is a context for one wait; it also ends when a component ends by itself.
func (c *Cluster) patience() (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(c.ctx, Patience, fmt.Errorf("nothing came of it in %s", Patience))
}

// cause is why a context is done; for the API's own errors, which don't say it.
func cause(ctx context.Context) error { return context.Cause(ctx) }
