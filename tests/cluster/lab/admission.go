// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WaitAdmitted waits until kubelet has taken a pod, which is after its devices were allocated; its
// containers may not run yet. One that is rejected ends the test with kubelet's message.
func (c *Cluster) WaitAdmitted(name string) *corev1.Pod {
	pod := c.WaitPod(name, "be admitted", func(pod *corev1.Pod) bool {
		return pod.Status.StartTime != nil || finished(pod)
	})
	if finished(pod) {
		c.check(fmt.Errorf("pod %s: %s: %s: %s", name, pod.Status.Phase, pod.Status.Reason,
			pod.Status.Message))
	}
	return pod
}

// BeginDelete asks for a pod's deletion and does not wait for it.
func (c *Cluster) BeginDelete(name string) {
	ctx, cancel := c.patience()
	defer cancel()
	err := c.Client.CoreV1().Pods(defaultNamespace).Delete(ctx, name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		c.check(err)
	}
}

// WaitLogAfter is WaitLog for a line behind a mark of the component's log.
func (p *Component) WaitLogAfter(mark int64, text string) string {
	ctx, cancel := p.c.patience()
	defer cancel()
	line, err := p.log.wait(ctx, mark, text)
	if err != nil {
		err = fmt.Errorf("waiting for %q in the log of %s: %w", text, p.Name, err)
	}
	p.c.check(err)
	return line
}
