// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/fsnotify/fsnotify"
)

// Log is a growing file of lines. A mark is a place in it: what a test has done since is behind it.
type Log struct{ path string }

func newLog(path string) *Log { return &Log{path: path} }

// Mark is the present end.
func (l *Log) Mark() int64 {
	status, err := os.Stat(l.path)
	if err != nil {
		return 0
	}
	return status.Size()
}

// Lines are the complete ones behind the mark that have `text` in them.
func (l *Log) Lines(mark int64, text string) []string {
	var found []string
	data, _ := l.read(mark)
	for line := range strings.Lines(string(data)) {
		if strings.HasSuffix(line, "\n") && strings.Contains(line, text) {
			found = append(found, strings.TrimSuffix(line, "\n"))
		}
	}
	return found
}

func (l *Log) read(mark int64) ([]byte, error) {
	file, err := os.Open(l.path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if _, err := file.Seek(mark, io.SeekStart); err != nil {
		return nil, err
	}
	return io.ReadAll(file)
}

// wait returns the first complete line behind the mark with `text` in it.
func (l *Log) wait(ctx context.Context, mark int64, text string) (string, error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return "", err
	}
	defer watcher.Close()
	if err := watcher.Add(l.path); err != nil {
		return "", err
	}
	for {
		data, err := l.read(mark)
		if err != nil {
			return "", err
		}
		for {
			line, rest, complete := bytes.Cut(data, []byte("\n"))
			if !complete {
				break
			}
			if bytes.Contains(line, []byte(text)) {
				return string(line), nil
			}
			mark += int64(len(line)) + 1
			data = rest
		}
		select {
		case <-watcher.Events:
		case err := <-watcher.Errors:
			return "", fmt.Errorf("watching %s: %w", l.path, err)
		case <-ctx.Done():
			return "", cause(ctx)
		}
	}
}

// tail is its last lines, each cut, for a failure's report.
func (l *Log) tail(lines, width int) (string, error) {
	data, err := l.read(0)
	if err != nil || len(data) == 0 {
		return "", errors.Join(err)
	}
	all := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	if len(all) > lines {
		all = all[len(all)-lines:]
	}
	for i, line := range all {
		if len(line) > width {
			all[i] = line[:width] + "..."
		}
	}
	return strings.Join(all, "\n") + "\n", nil
}
