// SPDX-License-Identifier: Apache-2.0

// Command cluster is the tests' cluster by hand; scripts/cluster builds and runs it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"switchyard/tests/cluster/components"
	"switchyard/tests/cluster/lab"
)

const usage = `usage: scripts/cluster COMMAND [ARGUMENT...]

A real Kubernetes 1.37 with one node on this machine (etcd, API server, controller manager,
scheduler, kubelet, containerd, runc), a simulated GPU board, and the agent on it; in namespaces of
its own. Needs root.

  build              build Kubernetes and the rest; 10 to 15 minutes the first time, then cached
  up [FLAG...]       start it; returns when the node is Ready (up --help lists the flags)
  kubectl ARG...     kubectl, as administrator
  ctr ARG...         containerd's client
  sim ARG...         switchyard-sim on the node's hardware: faults, Fabric Manager, status
  exec CMD...        any command inside the namespaces, where /dev/vfio, /var/lib/kubelet,
                     /run/switchyard and the others are the node's
  logs [NAME]        the folder of the logs, or one of them: agent, kubelet, apiserver, ...
  status             whether it is up, and how the node is
  down               end it; nothing is left of it

Examples:
  scripts/cluster up --board hgx-b200 --consumer kata
  scripts/cluster kubectl get nodes
  scripts/cluster sim fault device 2 vanish
  scripts/cluster exec switchyard doctor --config /run/cluster/agent.yaml

Exit codes: 0 ok, 1 failed, 2 wrong usage; kubectl, ctr, sim and exec have the command's.
`

func main() {
	if len(os.Args) < 2 {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

func run(name string, args []string) error {
	dir := lab.DefaultDir()
	switch name {
	case "--help", "-h", "help":
		fmt.Print(usage)
		return nil
	case "build":
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		defer stop()
		set, err := components.Build(ctx, os.Stdout)
		if err == nil {
			fmt.Println("cluster: built:", set.Bin)
		}
		return err
	case "up":
		return up(dir, args)
	case "down":
		return lab.Down(dir)
	}
	c, err := lab.Attach(dir)
	if err != nil {
		return err
	}
	switch name {
	case "status":
		fmt.Printf("up: %s, board %s\n", dir, c.BoardName())
		return c.Enter(c.Program("kubectl"), "get", "nodes", "-o", "wide")
	case "kubectl", "ctr":
		return c.Enter(append([]string{c.Program(name)}, args...)...)
	case "sim":
		return c.Enter(append([]string{"switchyard-sim", "--dir", "/run/cluster/sim"}, args...)...)
	case "exec":
		if len(args) == 0 {
			return wrong("exec: no command")
		}
		return c.Enter(args...)
	case "logs":
		if len(args) == 0 {
			fmt.Println(c.Path("log"))
			return nil
		}
		return c.Enter("cat", "/run/cluster/log/"+args[0]+".log")
	}
	return wrong(name + ": no such command")
}

func wrong(what string) error {
	fmt.Fprintf(os.Stderr, "cluster: %s; scripts/cluster --help lists them\n", what)
	os.Exit(2)
	return nil
}

// pairs is a flag that may come more than once, each time with KEY=VALUE.
type pairs map[string]string

func (p pairs) String() string { return "" }
func (p pairs) Set(text string) error {
	key, value, found := strings.Cut(text, "=")
	if !found {
		return errors.New("must be KEY=VALUE")
	}
	p[key] = value
	return nil
}

func up(dir string, args []string) error {
	options := lab.Options{Dir: dir, AgentConfig: map[string]string{}}
	flags := flag.NewFlagSet("scripts/cluster up", flag.ExitOnError)
	flags.StringVar(&options.Board, "board", "hgx-h100", "of switchyard-sim: a `name` or a .json file")
	flags.StringVar(&options.Consumer, "consumer", "kubevirt", "kubevirt or kata")
	flags.Var(pairs(options.AgentConfig), "set", "more of the agent's configuration, `KEY=VALUE`, as often "+
		"as needed: --set fabric.policy=lowest-id")
	flags.BoolVar(&options.NoAgent, "no-agent", false, "leave the agent to you")
	iommufd := flags.Bool("iommufd", false, "the node has /dev/iommu")
	kubelet := flags.String("kubelet", "", "a `file` with more of kubelet's configuration")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return wrong("up: " + flags.Arg(0) + ": no such flag")
	}
	if *iommufd {
		options.Hardware = []string{"--iommufd", "on"}
	}
	if *kubelet != "" {
		text, err := os.ReadFile(*kubelet)
		if err != nil {
			return err
		}
		options.KubeletConfig = string(text)
	}
	if _, err := lab.Attach(dir); err == nil {
		return errors.New("a cluster is up; end it with scripts/cluster down")
	}
	began := time.Now()
	if err := lab.Up(options); err != nil {
		return err
	}
	fmt.Printf(`cluster: the node is Ready after %s

Next:
  scripts/cluster kubectl get nodes
  scripts/cluster exec switchyard partitions --config /run/cluster/agent.yaml
  scripts/cluster logs agent
  scripts/cluster down
`, time.Since(began).Round(100*time.Millisecond))
	return nil
}
