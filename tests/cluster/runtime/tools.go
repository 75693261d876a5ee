// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package runtime names what the cluster runs beside Kubernetes; its go.mod pins the versions. It is a
// module of its own because etcd and containerd want other versions of shared modules than Kubernetes.
package runtime

import (
	_ "github.com/containerd/containerd/v2/cmd/containerd"
	_ "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2"
	_ "github.com/containerd/containerd/v2/cmd/ctr"
	_ "github.com/containernetworking/plugins/plugins/ipam/host-local"
	_ "github.com/containernetworking/plugins/plugins/main/bridge"
	_ "github.com/containernetworking/plugins/plugins/main/loopback"
	_ "go.etcd.io/etcd/server/v3"
)
