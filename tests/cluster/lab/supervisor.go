// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// supervisor is the part of init that runs components. It also reaps what they leave behind, as PID 1
// must. It decides nothing: who asks says what to start, and starts it again.
type supervisor struct {
	mutex   sync.Mutex
	running map[string]*process
}

type process struct {
	pid    int
	ended  chan struct{}
	status string // once ended
}

func newSupervisor() *supervisor { return &supervisor{running: map[string]*process{}} }

func (s *supervisor) listen(socket string) (serve func() error, err error) {
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	children := make(chan os.Signal, 1)
	signal.Notify(children, unix.SIGCHLD)
	go func() {
		for range children {
			s.reap()
		}
	}()
	return func() error {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return err
			}
			go s.handle(conn)
		}
	}, nil
}

func (s *supervisor) reap() {
	s.mutex.Lock() // not between a start and its entry in the table
	defer s.mutex.Unlock()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		for _, p := range s.running {
			if p.pid == pid && p.status == "" {
				p.status = describe(status)
				close(p.ended)
			}
		}
	}
}

func describe(status syscall.WaitStatus) string {
	if status.Signaled() {
		return "signal: " + status.Signal().String()
	}
	return fmt.Sprintf("exit status %d", status.ExitStatus())
}

func (s *supervisor) handle(conn net.Conn) {
	defer conn.Close()
	reader := bufio.NewReader(conn)
	line, err := reader.ReadBytes('\n')
	if err != nil {
		return
	}
	var r request
	var a answer
	var target net.Conn
	if err = json.Unmarshal(line, &r); err == nil {
		a, target, err = s.do(r)
	}
	if err != nil {
		a.Error = err.Error()
	}
	if json.NewEncoder(conn).Encode(a) != nil || target == nil {
		return
	}
	join(conn, reader, target)
}

func (s *supervisor) do(r request) (answer, net.Conn, error) {
	switch r.Op {
	case "start":
		return answer{}, nil, s.start(r)
	case "signal":
		p, err := s.find(r.Name)
		if err != nil {
			return answer{}, nil, err
		}
		return answer{}, nil, s.signal(p, syscall.Signal(r.Signal))
	case "wait":
		p, err := s.find(r.Name)
		if err != nil {
			return answer{}, nil, err
		}
		<-p.ended
		return answer{Status: p.status}, nil, nil
	case "dial":
		target, err := net.Dial("tcp", r.Address)
		return answer{}, target, err
	case "bind":
		m := &mounter{}
		if status, err := os.Stat(r.From); err == nil && !status.IsDir() {
			m.keep(os.WriteFile(r.To, nil, 0o600))
		} else {
			m.mkdir(r.To)
		}
		m.bind(r.From, r.To)
		return answer{}, nil, m.err
	}
	return answer{}, nil, fmt.Errorf("%q: no such request", r.Op)
}

func (s *supervisor) find(name string) (*process, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if p := s.running[name]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("%s was never started", name)
}

func (s *supervisor) start(r request) error {
	log, err := os.OpenFile(r.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer null.Close()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if p := s.running[r.Name]; p != nil && p.status == "" {
		return fmt.Errorf("it runs already, as process %d", p.pid)
	}
	pid, err := syscall.ForkExec(r.Argv[0], r.Argv, &syscall.ProcAttr{
		Dir: inside, Env: r.Env, Files: []uintptr{null.Fd(), log.Fd(), log.Fd()},
		Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return fmt.Errorf("running %s: %w", r.Argv[0], err)
	}
	s.running[r.Name] = &process{pid: pid, ended: make(chan struct{})}
	return nil
}

// signal does nothing to a process that has ended: its number may be another's.
func (s *supervisor) signal(p *process, signal syscall.Signal) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if p.status != "" {
		return nil
	}
	return syscall.Kill(p.pid, signal)
}

// join copies both ways until both ends have closed.
func join(conn net.Conn, rest io.Reader, target net.Conn) {
	defer target.Close()
	var done sync.WaitGroup
	for _, way := range []struct {
		to   net.Conn
		from io.Reader
	}{{target, rest}, {conn, target}} {
		done.Add(1)
		go func() {
			defer done.Done()
			_, _ = io.Copy(way.to, way.from)
			if half, ok := way.to.(interface{ CloseWrite() error }); ok {
				_ = half.CloseWrite()
			}
		}()
	}
	done.Wait()
}
