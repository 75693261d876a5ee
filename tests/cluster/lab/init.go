// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// runInit is PID 1 of the cluster's namespaces: it makes the mounts and the network, and then starts
// and signals the components that its socket is asked for. When it ends, so does everything inside.
func runInit(dir string) error {
	go func() { // the keeper is gone
		_, _ = io.Copy(io.Discard, os.NewFile(lifelineFD, "lifeline"))
		os.Exit(1)
	}()
	unix.CloseOnExec(lifelineFD)
	unix.CloseOnExec(reportFD)
	report := os.NewFile(reportFD, "report")
	serve, err := setUp(dir)
	if err != nil {
		fmt.Fprintln(report, err)
		return err
	}
	if _, err := fmt.Fprintln(report, "ok"); err != nil {
		return err
	}
	report.Close()
	return serve()
}

func setUp(dir string) (serve func() error, err error) {
	if err := unix.Sethostname([]byte(nodeName)); err != nil {
		return nil, fmt.Errorf("setting the host name: %w", err)
	}
	if err := setUpMounts(dir); err != nil {
		return nil, err
	}
	if err := makeControlGroups(groupOf(dir)); err != nil {
		return nil, err
	}
	if err := setUpNetwork(); err != nil {
		return nil, err
	}
	return newSupervisor().listen(filepath.Join(inside, "control.sock"))
}
