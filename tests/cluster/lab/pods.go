// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/cache"
)

// Container asks for `count` of a resource, says what it was given, and sleeps.
func Container(name, resourceName string, count int64) corev1.Container {
	amount := corev1.ResourceList{}
	if count > 0 {
		amount[corev1.ResourceName(resourceName)] = *resource.NewQuantity(count, resource.DecimalSI)
	}
	return corev1.Container{
		Name: name, Image: Image, ImagePullPolicy: corev1.PullNever,
		Command:   []string{"sh", "-c", insideScript + "exec sleep 1000000"},
		Resources: corev1.ResourceRequirements{Limits: amount},
	}
}

// InitContainer is Container, but ends instead of sleeping.
func InitContainer(name, resourceName string, count int64) corev1.Container {
	container := Container(name, resourceName, count)
	container.Command = []string{"sh", "-c", insideScript}
	return container
}

// Pod of these containers. It ends at once when it is deleted, and never starts again by itself.
func Pod(name string, containers ...corev1.Container) *corev1.Pod {
	no, noTime := false, int64(0)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: defaultNamespace},
		Spec: corev1.PodSpec{
			Containers: containers, RestartPolicy: corev1.RestartPolicyNever,
			TerminationGracePeriodSeconds: &noTime,
			AutomountServiceAccountToken:  &no, EnableServiceLinks: &no,
		},
	}
}

// Daemon has no devices and starts again by itself, as each node has such pods. Without any, the agent
// believes no list that lacks a pod: kubelet may not know its pods yet.
func Daemon(name string) *corev1.Pod {
	pod := Pod(name, Container(name, "", 0))
	pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
	return pod
}

// CreatePod creates it; kubelet has not decided yet.
func (c *Cluster) CreatePod(pod *corev1.Pod) {
	ctx, cancel := c.patience()
	defer cancel()
	_, err := c.Client.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	c.check(err)
}

// Admitted creates a pod and returns it Running. One that fails ends the test with kubelet's message.
func (c *Cluster) Admitted(pod *corev1.Pod) *corev1.Pod {
	c.CreatePod(pod)
	return c.WaitRunning(pod.Name)
}

// Refused creates a pod and returns it Failed; its status has kubelet's reason and message.
func (c *Cluster) Refused(pod *corev1.Pod) *corev1.Pod {
	c.CreatePod(pod)
	return c.WaitPod(pod.Name, "fail", func(pod *corev1.Pod) bool {
		return pod.Status.Phase == corev1.PodFailed
	})
}

// WaitRunning waits until every container runs.
func (c *Cluster) WaitRunning(name string) *corev1.Pod {
	pod := c.WaitPod(name, "run", func(pod *corev1.Pod) bool {
		return pod.Status.Phase == corev1.PodRunning || finished(pod)
	})
	if finished(pod) {
		c.check(fmt.Errorf("pod %s: %s: %s: %s", name, pod.Status.Phase, pod.Status.Reason,
			pod.Status.Message))
	}
	return pod
}

func finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

func (c *Cluster) pods(name string) cache.ListerWatcher {
	return cache.NewListWatchFromClient(c.Client.CoreV1().RESTClient(), "pods", defaultNamespace,
		fields.OneTermEqualSelector("metadata.name", name))
}

// WaitPod waits until an existing pod is as `done` says.
func (c *Cluster) WaitPod(name, what string, done func(*corev1.Pod) bool) *corev1.Pod {
	pod, err := waitFor(c, c.pods(name), &corev1.Pod{}, "pod "+name+" to "+what,
		func(pod *corev1.Pod, deleted bool) bool { return !deleted && done(pod) })
	c.check(err)
	return pod
}

// WaitUnschedulable waits until the scheduler has said that there is no room for a pod.
func (c *Cluster) WaitUnschedulable(name string) *corev1.Pod {
	return c.WaitPod(name, "be unschedulable", func(pod *corev1.Pod) bool {
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodScheduled {
				return condition.Reason == corev1.PodReasonUnschedulable
			}
		}
		return false
	})
}

// DeletePod deletes it and waits until it is gone from the API. For a pod of Pod, which has no grace
// period, that is at once: kubelet gives its devices on while its containers are still being ended.
func (c *Cluster) DeletePod(name string) {
	c.BeginDelete(name)
	_, err := waitFor(c, c.pods(name), &corev1.Pod{}, "pod "+name+" to be gone",
		func(_ *corev1.Pod, deleted bool) bool { return deleted })
	c.check(err)
}
