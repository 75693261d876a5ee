// SPDX-License-Identifier: Apache-2.0

package components

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// progress reads what `go build -v` says (the name of each package that it compiles, a line each) and
// prints a line from time to time: often to a terminal, where it replaces the one before, else twice
// a minute. Anything that is no package's name is kept for the error message.
type progress struct {
	out      io.Writer
	terminal bool
	name     string
	began    time.Time

	mutex    sync.Mutex
	packages int
	rest     []byte        // of a line that is not complete
	said     *bytes.Buffer // at most 64 KiB

	stopped chan struct{}
	done    sync.WaitGroup
}

func startProgress(out io.Writer, name string, said *bytes.Buffer) *progress {
	p := &progress{out: out, name: name, said: said, began: time.Now(), stopped: make(chan struct{})}
	every := 30 * time.Second
	if file, ok := out.(*os.File); ok {
		if status, err := file.Stat(); err == nil && status.Mode()&os.ModeCharDevice != 0 {
			p.terminal = true
			every = time.Second
		}
	}
	p.done.Add(1)
	go func() {
		defer p.done.Done()
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				p.print("")
			case <-p.stopped:
				return
			}
		}
	}()
	return p
}

func (p *progress) Write(data []byte) (int, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.rest = append(p.rest, data...)
	for {
		line, rest, found := bytes.Cut(p.rest, []byte("\n"))
		if !found {
			return len(data), nil
		}
		p.rest = rest
		if !bytes.ContainsAny(line, " :") {
			p.packages++
		} else if !bytes.HasPrefix(line, []byte("go: downloading ")) && p.said.Len() < 64<<10 {
			p.said.Write(append(line, '\n'))
		}
	}
}

func (p *progress) print(end string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	start := ""
	if p.terminal {
		start = "\r\x1b[K"
	} else {
		end = "\n"
	}
	fmt.Fprintf(p.out, "%scluster: %s: %d packages compiled, %s%s", start, p.name, p.packages,
		time.Since(p.began).Round(time.Second), end)
}

func (p *progress) stop() {
	close(p.stopped)
	p.done.Wait()
	p.print("\n")
}
