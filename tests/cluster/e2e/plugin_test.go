// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	deviceplugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"switchyard/tests/cluster/lab"
)

const thing = "example.com/thing"

// scripted is a device plugin that does what a test says, to learn what kubelet does with any plugin.
type scripted struct {
	deviceplugin.UnimplementedDevicePluginServer
	c       *lab.Cluster
	socket  string
	devices []string
	server  *grpc.Server
	streams chan struct{} // one for each stream that kubelet opens
	end     chan struct{} // closed: the streams end

	// Set before the plugin registers.
	prefer   func(available []string, size int) []string
	allocate func(ids []string) // may block
}

// newScripted serves devices on a socket of this name in kubelet's folder, until the test ends.
func newScripted(t *testing.T, c *lab.Cluster, socket string, devices ...string) *scripted {
	t.Helper()
	listener, err := net.Listen("unix", c.Path("kubelet/device-plugins", socket))
	if err != nil {
		t.Fatal(err)
	}
	p := &scripted{
		c: c, socket: socket, devices: devices, server: grpc.NewServer(),
		streams: make(chan struct{}, 100), end: make(chan struct{}),
		prefer:   func(available []string, size int) []string { return available[:size] },
		allocate: func([]string) {},
	}
	deviceplugin.RegisterDevicePluginServer(p.server, p)
	go func() { _ = p.server.Serve(listener) }()
	t.Cleanup(p.server.Stop)
	return p
}

// register is what every plugin calls first; kubelet asks the plugin for its options inside.
func (p *scripted) register() error {
	conn, err := grpc.NewClient("unix:"+p.c.Path("kubelet/device-plugins/kubelet.sock"),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), lab.Patience)
	defer cancel()
	_, err = deviceplugin.NewRegistrationClient(conn).Register(ctx, &deviceplugin.RegisterRequest{
		Version: deviceplugin.Version, Endpoint: p.socket, ResourceName: thing,
	})
	return err
}

// mustRegister returns when kubelet reads the device list.
func (p *scripted) mustRegister(t *testing.T) {
	t.Helper()
	if err := p.register(); err != nil {
		t.Fatal(err)
	}
	receive(t, p.streams, "kubelet to ask "+p.socket+" for its devices")
}

// receive fails the test if nothing comes.
func receive[T any](t *testing.T, from <-chan T, what string) T {
	t.Helper()
	select {
	case value := <-from:
		return value
	case <-time.After(lab.Patience):
		t.Fatalf("waiting for %s: nothing came of it in %s", what, lab.Patience)
		panic("not reached")
	}
}

// kubeletHas waits until kubelet has taken a list of `count` healthy devices, behind a mark of its log.
func kubeletHas(c *lab.Cluster, mark int64, resource, count string) {
	c.Kubelet.WaitLogAfter(mark, `"Processed device updates for resource" resourceName="`+resource+
		`" totalCount=`+count+` healthyCount=`+count)
}

func (p *scripted) GetDevicePluginOptions(context.Context, *deviceplugin.Empty) (
	*deviceplugin.DevicePluginOptions, error,
) {
	return &deviceplugin.DevicePluginOptions{GetPreferredAllocationAvailable: true}, nil
}

func (p *scripted) ListAndWatch(_ *deviceplugin.Empty,
	stream grpc.ServerStreamingServer[deviceplugin.ListAndWatchResponse],
) error {
	list := &deviceplugin.ListAndWatchResponse{}
	for _, id := range p.devices {
		list.Devices = append(list.Devices, &deviceplugin.Device{ID: id, Health: deviceplugin.Healthy})
	}
	if err := stream.Send(list); err != nil {
		return err
	}
	p.streams <- struct{}{}
	select {
	case <-p.end:
	case <-stream.Context().Done():
	}
	return nil
}

func (p *scripted) GetPreferredAllocation(_ context.Context, r *deviceplugin.PreferredAllocationRequest) (
	*deviceplugin.PreferredAllocationResponse, error,
) {
	response := &deviceplugin.PreferredAllocationResponse{}
	for _, container := range r.ContainerRequests {
		ids := p.prefer(container.AvailableDeviceIDs, int(container.AllocationSize))
		response.ContainerResponses = append(response.ContainerResponses,
			&deviceplugin.ContainerPreferredAllocationResponse{DeviceIDs: ids})
	}
	return response, nil
}

func (p *scripted) Allocate(_ context.Context, r *deviceplugin.AllocateRequest) (
	*deviceplugin.AllocateResponse, error,
) {
	response := &deviceplugin.AllocateResponse{}
	for _, container := range r.ContainerRequests {
		p.allocate(container.DevicesIds)
		response.ContainerResponses = append(response.ContainerResponses,
			&deviceplugin.ContainerAllocateResponse{})
	}
	return response, nil
}
