// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"net"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// Node is Kubernetes' own.
type Node = corev1.Node

const defaultNamespace = "default"

func (c *Cluster) restConfig() *rest.Config {
	return &rest.Config{
		Host: "https://" + serviceIP + ":443",
		TLSClientConfig: rest.TLSClientConfig{
			CAData: c.authority, CertData: c.admin.certificate, KeyData: c.admin.key,
		},
		Dial: func(_ context.Context, _, address string) (net.Conn, error) { return c.Dial(address) },
		QPS:  500, Burst: 1000,
	}
}

func (c *Cluster) connect() error {
	client, err := kubernetes.NewForConfig(c.restConfig())
	c.Client = client
	return err
}

// waitFor watches one object until `done`. It comes through restarts of the API server.
func waitFor[T runtime.Object](c *Cluster, list cache.ListerWatcher, example T, what string,
	done func(object T, deleted bool) bool,
) (T, error) {
	ctx, cancel := c.patience()
	defer cancel()
	var last T
	check := func(event watch.Event) (bool, error) {
		object, ok := event.Object.(T)
		if !ok {
			return false, fmt.Errorf("watching: %v", event.Object)
		}
		last = object
		return done(object, event.Type == watch.Deleted), nil
	}
	// Without the object there is nothing to see, and its absence may be what is waited for.
	absent := func(store cache.Store) (bool, error) {
		return len(store.List()) == 0 && done(example, true), nil
	}
	_, err := watchtools.UntilWithSync(ctx, list, example, absent, check)
	if err != nil {
		err = fmt.Errorf("waiting for %s: %w", what, errors.Join(err, cause(ctx)))
	}
	return last, err
}

func (c *Cluster) nodes() cache.ListerWatcher {
	return cache.NewListWatchFromClient(c.Client.CoreV1().RESTClient(), "nodes", "",
		fields.OneTermEqualSelector("metadata.name", nodeName))
}

func (c *Cluster) waitNode(what string, done func(*corev1.Node) bool) (*corev1.Node, error) {
	return waitFor(c, c.nodes(), &corev1.Node{}, what, func(node *corev1.Node, deleted bool) bool {
		return !deleted && done(node)
	})
}

func (c *Cluster) waitNodeReady() error {
	_, err := c.waitNode("the node to be Ready and without taints", ready)
	return err
}

func ready(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue && len(node.Spec.Taints) == 0
		}
	}
	return false
}

// waitServiceAccount: without it pods are refused.
func (c *Cluster) waitServiceAccount() error {
	list := cache.NewListWatchFromClient(c.Client.CoreV1().RESTClient(), "serviceaccounts",
		defaultNamespace, fields.OneTermEqualSelector("metadata.name", "default"))
	_, err := waitFor(c, list, &corev1.ServiceAccount{}, "the default service account",
		func(_ *corev1.ServiceAccount, deleted bool) bool { return !deleted })
	return err
}

// Node is its present state.
func (c *Cluster) Node() *corev1.Node {
	ctx, cancel := c.patience()
	defer cancel()
	node, err := c.Client.CoreV1().Nodes().Get(ctx, nodeName, metav1.GetOptions{})
	c.check(err)
	return node
}

// WaitNode waits until the node is as `done` says.
func (c *Cluster) WaitNode(what string, done func(*corev1.Node) bool) *corev1.Node {
	node, err := c.waitNode(what, done)
	c.check(err)
	return node
}

// WaitReady waits for a Ready node, after a restart of the API server or of kubelet.
func (c *Cluster) WaitReady() {
	c.check(c.waitAPIServer())
	c.check(c.waitNodeReady())
}

// WaitAllocatable waits until the node offers exactly `count` of a resource.
func (c *Cluster) WaitAllocatable(resource string, count int64) {
	c.WaitNode(fmt.Sprintf("%d allocatable %s", count, resource), func(node *corev1.Node) bool {
		quantity, ok := node.Status.Allocatable[corev1.ResourceName(resource)]
		return quantity.Value() == count && (ok || count == 0)
	})
}
