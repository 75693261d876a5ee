// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Start starts a cluster for one test and ends it with the test. If the test failed, what pods and
// events there are and the end of each log are printed, and the whole logs are copied to a folder of
// the test's name below $CLUSTER_LOGS, if that is set.
func Start(t *testing.T, options Options) *Cluster {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("a cluster needs root")
	}
	began := time.Now()
	fatal := func(err error) {
		t.Helper()
		t.Fatal(err)
	}
	c, err := New(options, fatal)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(c.Report())
			if to := os.Getenv("CLUSTER_LOGS"); to != "" {
				c.copyLogs(t, filepath.Join(to, strings.ReplaceAll(t.Name(), "/", "_")))
			}
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the cluster is up after %s", time.Since(began).Round(10*time.Millisecond))
	return c
}

// What is printed of a log: ctest shows 20,000 bytes. The rest is in the copied logs.
const (
	reportLines  = 5
	reportEvents = 15
	reportWidth  = 200
)

var reportMore = map[string]int{"agent.log": 25, "kubelet.log": 20, "init.log": 10, "keeper.log": 10}

// Report is the state of the cluster for somebody who looks for a failure's reason.
func (c *Cluster) Report() string {
	var out strings.Builder
	logs, _ := filepath.Glob(c.Path("log/*.log"))
	slices.Sort(logs)
	for _, path := range logs {
		lines := max(reportLines, reportMore[filepath.Base(path)])
		text, err := newLog(path).tail(lines, reportWidth)
		if err != nil {
			text = err.Error() + "\n"
		}
		fmt.Fprintf(&out, "--- %s\n%s", filepath.Base(path), text)
	}
	if c.Client == nil {
		return out.String()
	}
	// The cluster may be what is broken.
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	pods, err := c.Client.CoreV1().Pods("").List(ctx, metav1.ListOptions{Limit: 50})
	if err != nil {
		fmt.Fprintf(&out, "--- no list of pods: %v\n", err)
		return out.String()
	}
	fmt.Fprintln(&out, "--- pods")
	for _, pod := range pods.Items {
		fmt.Fprintf(&out, "%s: %s %s %s\n", pod.Name, pod.Status.Phase, pod.Status.Reason,
			pod.Status.Message)
	}
	events, err := c.Client.CoreV1().Events("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return out.String()
	}
	fmt.Fprintln(&out, "--- the last events")
	for _, event := range events.Items[max(0, len(events.Items)-reportEvents):] {
		fmt.Fprintf(&out, "%s %s: %.200s\n", event.InvolvedObject.Name, event.Reason, event.Message)
	}
	return out.String()
}

func (c *Cluster) copyLogs(t *testing.T, to string) {
	if err := os.RemoveAll(to); err != nil {
		t.Log(err)
	}
	if err := os.CopyFS(to, os.DirFS(c.Path("log"))); err != nil {
		t.Log(err)
		return
	}
	t.Logf("whole logs: %s", to)
}
