// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The keeper outlives whoever started the cluster: when that process ends, however it does, the
// keeper ends the namespaces and removes what the cluster left on the machine (its folder, its
// control groups). A killed keeper takes the namespaces with it; the next cluster removes the rest.
//
// Its descriptors: 3 the lifeline, whose other end its starter holds; 4 what it says: a keeperReport
// a line, then end-of-file when all is gone.

const (
	lifelineFD = 3
	reportFD   = 4
	// Written to the lifeline: its end means nothing any more, only SIGTERM does.
	detach = 'd'
)

type keeperReport struct {
	InitPID int    `json:"initPID"` // as seen from outside
	Problem string `json:"problem,omitempty"`
}

func runKeeper(dir string) error {
	out := os.NewFile(reportFD, "report")
	defer out.Close() // also: not before, by the garbage collector
	report := json.NewEncoder(out)
	lock, err := lockFolder(dir)
	if err != nil {
		return errors.Join(err, report.Encode(keeperReport{Problem: err.Error()}))
	}
	defer lock.Close()
	command, lifeline, said, err := startInit(dir)
	if err != nil {
		return errors.Join(err, report.Encode(keeperReport{Problem: err.Error()}), sweep(dir))
	}
	defer lifeline.Close()
	answer := keeperReport{InitPID: command.Process.Pid}
	if line, err := bufio.NewReader(said).ReadString('\n'); line != "ok\n" {
		answer.Problem = fmt.Sprintf("the cluster's init: %s (%v)", strings.TrimSpace(line), err)
	}
	if err := report.Encode(answer); err != nil {
		fmt.Fprintln(os.Stderr, "cluster: keeper: nobody reads:", err)
	}
	if answer.Problem == "" {
		waitForEnd(command)
	}
	_ = command.Process.Kill() // takes every process of its PID namespace with it
	_ = command.Wait()
	return sweep(dir)
}

// startInit starts PID 1 of the cluster. Closing `lifeline` ends it; `said` is its report.
func startInit(dir string) (command *exec.Cmd, lifeline, said *os.File, err error) {
	theirs, lifeline, err := os.Pipe()
	if err != nil {
		return nil, nil, nil, err
	}
	defer theirs.Close()
	said, report, err := os.Pipe()
	if err != nil {
		return nil, nil, nil, err
	}
	defer report.Close()
	log, err := os.OpenFile(filepath.Join(dir, "log", "init.log"),
		os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, nil, nil, err
	}
	defer log.Close()
	command = exec.Command("/proc/self/exe", dir)
	command.Env = append(os.Environ(), roleVariable+"="+roleInit)
	command.ExtraFiles = []*os.File{theirs, report}
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWPID | unix.CLONE_NEWUTS |
			unix.CLONE_NEWIPC,
	}
	if err := command.Start(); err != nil {
		return nil, nil, nil, fmt.Errorf("making namespaces: %w", err)
	}
	return command, lifeline, said, nil
}

// waitForEnd returns when the starter is gone, on SIGTERM, or when the init ended by itself.
func waitForEnd(command *exec.Cmd) {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM)
	starter := make(chan struct{})
	go func() {
		var last [1]byte
		if n, _ := io.ReadFull(os.NewFile(lifelineFD, "lifeline"), last[:]); n == 1 && last[0] == detach {
			return
		}
		close(starter)
	}()
	ended := make(chan struct{})
	go func() {
		// Only watched, not reaped: runKeeper does that.
		var info unix.Siginfo
		for {
			err := unix.Waitid(unix.P_PID, command.Process.Pid, &info, unix.WEXITED|unix.WNOWAIT, nil)
			if !errors.Is(err, unix.EINTR) {
				break
			}
		}
		close(ended)
	}()
	select {
	case <-end:
	case <-starter:
	case <-ended:
	}
}

// lockFolder marks the folder as in use; the lock goes with the process. The file appears locked, so
// that nobody takes a cluster that is just starting for an abandoned one.
func lockFolder(dir string) (*os.File, error) {
	path := filepath.Join(dir, "lock")
	file, err := os.OpenFile(path+".new", os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = fmt.Fprintf(file, "%d\n", os.Getpid())
	err = errors.Join(err, unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB),
		os.Rename(path+".new", path))
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return file, nil
}

// sweep removes what a cluster whose processes are gone left on the machine.
func sweep(dir string) error {
	var problems []error
	for attempt := 0; attempt < 50; attempt++ {
		// The kernel lets go of a control group or a mount a moment after its last process.
		problems = []error{removeControlGroups(dir), os.RemoveAll(dir)}
		if errors.Join(problems...) == nil {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return errors.Join(problems...)
}

// sweepAbandoned removes clusters whose keeper was killed.
func sweepAbandoned(parent string) error {
	dirs, err := filepath.Glob(filepath.Join(parent, folderPrefix+"*"))
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		if abandoned(dir) {
			if err := sweep(dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// No cluster takes that long to have a keeper.
const birth = 10 * time.Minute

func abandoned(dir string) bool {
	file, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR, 0)
	if err != nil { // being made, or being removed, or its starter was killed before it had a keeper
		status, err := os.Stat(dir)
		return err == nil && time.Since(status.ModTime()) > birth
	}
	defer file.Close()
	return unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
}
