// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"switchyard/tests/cluster/components"
)

// For a cluster by hand: one that stays when the command that started it ends, until Down.

// DefaultDir is that of the cluster by hand.
func DefaultDir() string { return filepath.Join(os.TempDir(), folderPrefix+"by-hand") }

// record is what later commands need to know; by-hand.json in the cluster's folder.
type record struct {
	InitPID       int    `json:"initPID"`
	SwitchyardBin string `json:"switchyardBin"`
	Board         string `json:"board"`
	Bin           string `json:"bin"`
	CNI           string `json:"cni"`
}

func recordPath(dir string) string { return filepath.Join(dir, "by-hand.json") }

// Up starts a cluster and leaves it running.
func Up(options Options) error {
	c, err := New(options, func(err error) { panic(err) }) // nothing that is used here ends a test
	if err == nil {
		err = c.leave()
	}
	if err == nil {
		return nil
	}
	report := c.Report()
	return errors.Join(fmt.Errorf("%w\n%s", err, report), c.Close())
}

func (c *Cluster) leave() error {
	text, err := json.Marshal(record{c.initPID, c.options.SwitchyardBin, c.options.Board,
		c.programs.Bin, c.programs.CNI})
	if err != nil {
		return err
	}
	if err := os.WriteFile(recordPath(c.dir), text, 0o600); err != nil {
		return err
	}
	if _, err := c.lifeline.Write([]byte{detach}); err != nil {
		return err
	}
	return c.lifeline.Close()
}

// ErrNone: there is no cluster by hand.
var ErrNone = errors.New("no cluster is up; start one with scripts/cluster up")

// Attach returns the cluster by hand, for Enter and Hardware alone.
func Attach(dir string) (*Cluster, error) {
	text, err := os.ReadFile(recordPath(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNone
	}
	if err != nil {
		return nil, err
	}
	var r record
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("%s: %w", recordPath(dir), err)
	}
	if keeperOf(dir) == 0 {
		return nil, fmt.Errorf("%s: its keeper was killed; scripts/cluster down removes what is left", dir)
	}
	return &Cluster{
		dir: dir, initPID: r.InitPID, programs: components.Set{Bin: r.Bin, CNI: r.CNI},
		options: Options{SwitchyardBin: r.SwitchyardBin, Board: r.Board},
	}, nil
}

// Enter replaces this process by a command inside the cluster. It returns on failure only.
func (c *Cluster) Enter(argv ...string) error {
	const nsenter = "/usr/bin/nsenter"
	environment := c.environment()
	for i, variable := range environment {
		if strings.HasPrefix(variable, "TERM=") {
			environment[i] = "TERM=" + os.Getenv("TERM")
		}
	}
	err := syscall.Exec(nsenter, append([]string{"nsenter"}, c.nsenter(argv...)...), environment)
	return fmt.Errorf("%s: %w", nsenter, err)
}

// Program is the path of one of the cluster's programs.
func (c *Cluster) Program(name string) string { return c.programs.Program(name) }

// BoardName is the board that it was started with.
func (c *Cluster) BoardName() string { return c.options.Board }

// keeperOf is the process that holds the folder's lock; 0: none.
func keeperOf(dir string) int {
	file, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR, 0)
	if err != nil {
		return 0
	}
	defer file.Close()
	if unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
		return 0
	}
	text, err := os.ReadFile(file.Name())
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return pid
}

// Down ends the cluster by hand and returns when nothing is left of it.
func Down(dir string) error {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return ErrNone
	}
	pid := keeperOf(dir)
	if pid == 0 {
		return sweep(dir)
	}
	keeper, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return fmt.Errorf("opening the keeper, process %d: %w", pid, err)
	}
	defer unix.Close(keeper)
	if err := unix.PidfdSendSignal(keeper, unix.SIGTERM, nil, 0); err != nil {
		return err
	}
	poll := []unix.PollFd{{Fd: int32(keeper), Events: unix.POLLIN}}
	for deadline := time.Now().Add(Patience); time.Now().Before(deadline); {
		n, err := unix.Poll(poll, 1000)
		if n == 1 {
			break
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: still there after the end of its keeper (%v)", dir, err)
	}
	return nil
}
