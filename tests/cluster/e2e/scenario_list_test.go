// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"

	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"switchyard/tests/cluster/lab"
)

// What PodResources is asked in a scenario. kubelet tells nobody when it has heard of a pod, or of its
// end: it is asked again until it says what it should, or for too long.

func (r *scenarioRun) ask(done func(context.Context, podresources.PodResourcesListerClient) (bool, string)) {
	client, closeIt := r.c.PodResources()
	defer closeIt()
	ctx, cancel := context.WithTimeout(r.t.Context(), lab.Patience)
	defer cancel()
	for {
		fine, said := done(ctx, client)
		if fine {
			return
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			r.errorf("PodResources says: %s", said)
			return
		}
	}
}

func (r *scenarioRun) expectList(want map[string]map[string]int) {
	r.ask(func(ctx context.Context, client podresources.PodResourcesListerClient) (bool, string) {
		list, err := client.List(ctx, &podresources.ListPodResourcesRequest{})
		if err != nil {
			return false, err.Error()
		}
		got := map[string]map[string]int{}
		for _, pod := range list.PodResources {
			got[pod.Name] = map[string]int{}
			for _, container := range pod.Containers {
				count := 0
				for _, device := range container.Devices {
					count += len(device.DeviceIds)
				}
				got[pod.Name][container.Name] = count
			}
		}
		return reflect.DeepEqual(got, want), list.String()
	})
}

// waitKnown also waits for a kubelet that has just started to serve PodResources.
func (r *scenarioRun) waitKnown(pod string) {
	r.ask(func(ctx context.Context, client podresources.PodResourcesListerClient) (bool, string) {
		_, err := client.Get(ctx, &podresources.GetPodResourcesRequest{
			PodName: pod, PodNamespace: "default",
		})
		return err == nil, fmt.Sprint(err)
	})
}

func (r *scenarioRun) expectUnknown(pod string) {
	r.ask(func(ctx context.Context, client podresources.PodResourcesListerClient) (bool, string) {
		got, err := client.Get(ctx, &podresources.GetPodResourcesRequest{
			PodName: pod, PodNamespace: "default",
		})
		if err == nil {
			return false, got.String()
		}
		return strings.Contains(err.Error(), "pod "+pod+" in namespace default not found"), err.Error()
	})
}
