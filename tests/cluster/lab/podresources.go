// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// kubelet answers 100 calls a second of all its clients together, ten of them at once.
const retryLimited = `{"methodConfig": [{"name": [{}], "retryPolicy": {
  "maxAttempts": 5, "initialBackoff": "0.02s", "maxBackoff": "0.5s", "backoffMultiplier": 3,
  "retryableStatusCodes": ["RESOURCE_EXHAUSTED"]}}]}`

// PodResources connects to kubelet's service; `done` closes the connection. A call over kubelet's rate
// is made again.
func (c *Cluster) PodResources() (client podresources.PodResourcesListerClient, done func()) {
	conn, err := grpc.NewClient("unix:"+c.Path("kubelet/pod-resources/kubelet.sock"),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultServiceConfig(retryLimited),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(16<<20)))
	c.check(err)
	return podresources.NewPodResourcesListerClient(conn), func() { _ = conn.Close() }
}

// Devices are those that kubelet says a pod's containers have, by container, through PodResources Get.
// A pod that kubelet does not know is an error.
func (c *Cluster) Devices(pod string) map[string][]string {
	devices, err := c.devices(pod)
	c.check(err)
	return devices
}

// WaitKnown asks until kubelet knows a pod: there is nothing to watch. A kubelet that has just started
// serves PodResources before it has heard of its pods, and says then that there are none.
func (c *Cluster) WaitKnown(pod string) {
	ctx, cancel := c.patience()
	defer cancel()
	for {
		_, err := c.devices(pod)
		if err == nil {
			return
		}
		if !strings.Contains(err.Error(), "not found") {
			c.check(err)
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			c.check(fmt.Errorf("%w: %w", err, cause(ctx)))
		}
	}
}

func (c *Cluster) devices(pod string) (map[string][]string, error) {
	client, done := c.PodResources()
	defer done()
	ctx, cancel := c.patience()
	defer cancel()
	got, err := client.Get(ctx, &podresources.GetPodResourcesRequest{
		PodName: pod, PodNamespace: defaultNamespace,
	})
	if err != nil {
		return nil, fmt.Errorf("PodResources Get of %s: %w", pod, err)
	}
	devices := map[string][]string{}
	for _, container := range got.PodResources.Containers {
		for _, d := range container.Devices {
			devices[container.Name] = append(devices[container.Name], d.DeviceIds...)
		}
		slices.Sort(devices[container.Name])
	}
	return devices, nil
}

// Holders are the devices of a resource that kubelet lists, each with its pod. A device that two
// containers have is an error.
func (c *Cluster) Holders(resource string) map[string]string {
	client, done := c.PodResources()
	defer done()
	ctx, cancel := c.patience()
	defer cancel()
	got, err := client.List(ctx, &podresources.ListPodResourcesRequest{})
	c.check(err)
	holders := map[string]string{}
	for _, pod := range got.PodResources {
		for _, container := range pod.Containers {
			for _, d := range container.Devices {
				for _, id := range d.DeviceIds {
					if d.ResourceName != resource {
						continue
					}
					if other, twice := holders[id]; twice {
						c.check(fmt.Errorf("%s: kubelet lists it for %s and for %s", id, other, pod.Name))
					}
					holders[id] = pod.Name
				}
			}
		}
	}
	return holders
}
