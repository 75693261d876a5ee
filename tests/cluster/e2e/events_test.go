// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"switchyard/tests/cluster/lab"
)

// jsonLog makes the agent write what eventsSince reads.
var jsonLog = map[string]string{"log.format": "json"}

// event is a line of the agent's log: "event", "msg", and the event's own fields.
type event map[string]string

// list is a field that holds several values.
func (e event) list(field string) []string {
	return strings.FieldsFunc(e[field], func(r rune) bool { return r == ',' })
}

// eventsSince are the agent's events of these names behind a mark of its log, oldest first.
func eventsSince(t *testing.T, c *lab.Cluster, mark int64, names ...string) (found []event) {
	t.Helper()
	for _, line := range c.Agent.Log().Lines(mark, `"event":`) {
		var e event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("the agent's log: %v: %s", err, line)
		}
		for _, name := range names {
			if e["event"] == name {
				found = append(found, e)
			}
		}
	}
	return found
}
