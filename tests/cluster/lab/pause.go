// SPDX-License-Identifier: Apache-2.0

package lab

import "syscall"

// Pause stops a process as it is (SIGSTOP): its sockets stay, and who asks it something waits. Kill
// ends it also then.
func (p *Component) Pause() { p.c.check(p.signal(syscall.SIGSTOP)) }

// Resume lets it go on.
func (p *Component) Resume() { p.c.check(p.signal(syscall.SIGCONT)) }

func (p *Component) signal(signal syscall.Signal) error {
	_, err := p.c.ask(request{Op: "signal", Name: p.Name, Signal: int(signal)})
	return err
}
