// SPDX-License-Identifier: Apache-2.0

package lab

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/cache"
)

// WaitEvent returns the Kubernetes event of that reason once there is one. A node's are in namespace
// "default", a pod's in its own.
func (c *Cluster) WaitEvent(namespace, reason string) *corev1.Event {
	events := cache.NewListWatchFromClient(c.Client.CoreV1().RESTClient(), "events", namespace,
		fields.OneTermEqualSelector("reason", reason))
	event, err := waitFor(c, events, &corev1.Event{}, "event "+reason,
		func(_ *corev1.Event, deleted bool) bool { return !deleted })
	c.check(err)
	return event
}
