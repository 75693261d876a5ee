// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"sync"
	"syscall"
)

// Component is one process of the cluster, which can be ended and started by itself. Its methods end
// the test on failure. An end that nobody asked for ends every wait of the cluster with that reason.
type Component struct {
	Name string
	Argv []string
	Env  []string
	// MayEnd: its end is no failure, whenever it comes.
	MayEnd bool

	c   *Cluster
	log *Log

	mutex    sync.Mutex
	expected bool // the present process is being ended
	mark     int64
	ended    chan struct{} // of the present process
	status   string
}

// Component describes a process that the cluster does not have by itself: a second agent, say. It
// runs inside the namespaces from Start on.
func (c *Cluster) Component(name string, argv ...string) *Component {
	return &Component{Name: name, Argv: argv, c: c, log: newLog(c.Path("log", name+".log"))}
}

// Log is what it wrote, its former processes included.
func (p *Component) Log() *Log { return p.log }

// Start starts it, and returns when the process runs; wait for what it says with WaitLog.
func (p *Component) Start() { p.c.check(p.start()) }

func (p *Component) start() error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.mark = p.log.Mark()
	_, err := p.c.ask(request{
		Op: "start", Name: p.Name, Argv: p.Argv,
		Env: append([]string{"PATH=" + p.c.path(), "HOME=" + inside}, p.Env...),
		Log: within("log", p.Name+".log"),
	})
	if err != nil {
		return err
	}
	p.expected = p.MayEnd
	p.status = ""
	p.ended = make(chan struct{})
	go p.watch(p.ended)
	return nil
}

// watch learns of the end of the process that was just started.
func (p *Component) watch(ended chan struct{}) {
	a, err := p.c.ask(request{Op: "wait", Name: p.Name})
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.status = a.Status
	if !p.expected && err == nil {
		p.c.lose(fmt.Errorf("%s ended by itself (%s)", p.Name, a.Status))
	}
	close(ended)
}

// Stop asks it to end (SIGTERM) and waits until it has.
func (p *Component) Stop() { p.c.check(p.end(syscall.SIGTERM)) }

// Kill ends it as a crash does (SIGKILL).
func (p *Component) Kill() { p.c.check(p.end(syscall.SIGKILL)) }

// Restart is Stop and Start.
func (p *Component) Restart() {
	p.Stop()
	p.Start()
}

func (p *Component) end(signal syscall.Signal) error {
	p.mutex.Lock()
	p.expected = true
	ended := p.ended
	p.mutex.Unlock()
	if ended == nil {
		return fmt.Errorf("%s was never started", p.Name)
	}
	if _, err := p.c.ask(request{Op: "signal", Name: p.Name, Signal: int(signal)}); err != nil {
		return err
	}
	return p.wait(ended)
}

// Wait returns how its process ended ("exit status 0"), once it has. Set MayEnd before Start.
func (p *Component) Wait() string {
	p.mutex.Lock()
	ended := p.ended
	p.mutex.Unlock()
	p.c.check(p.wait(ended))
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.status
}

func (p *Component) wait(ended chan struct{}) error {
	ctx, cancel := p.c.patience()
	defer cancel()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for the end of %s: %w", p.Name, cause(ctx))
	}
}

// Running says whether its process is there.
func (p *Component) Running() bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.ended == nil {
		return false
	}
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// WaitLog returns the first line that the present process wrote with `text` in it.
func (p *Component) WaitLog(text string) string {
	line, err := p.waitLog(text)
	p.c.check(err)
	return line
}

func (p *Component) waitLog(text string) (string, error) {
	p.mutex.Lock()
	mark := p.mark
	p.mutex.Unlock()
	ctx, cancel := p.c.patience()
	defer cancel()
	line, err := p.log.wait(ctx, mark, text)
	if err != nil {
		return "", fmt.Errorf("waiting for %q in the log of %s: %w", text, p.Name, err)
	}
	return line, nil
}
