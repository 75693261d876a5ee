// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Board is what the simulator says of its hardware: the truth that the agent's decisions are held
// against.
type Board struct {
	GPUs    []GPU `json:"gpus"`
	IOMMUFD bool  `json:"iommufd"`
	FM      struct {
		Running    bool        `json:"running"`
		Partitions []Partition `json:"partitions"`
	} `json:"fm"`
}

// GPU is one module of the board.
type GPU struct {
	Module     int    `json:"module"`
	Address    string `json:"address"`
	Present    bool   `json:"present"`
	IOMMUGroup int    `json:"iommuGroup"`
	VFIO       *int   `json:"vfio"` // N of vfioN
	NUMANode   int    `json:"numaNode"`
}

// Partition of the fabric.
type Partition struct {
	ID      int   `json:"id"`
	Modules []int `json:"modules"`
	Active  bool  `json:"active"`
}

// Sim runs switchyard-sim on the cluster's hardware: c.Sim("fault", "fm", "down").
func (c *Cluster) Sim(args ...string) string {
	out, err := c.sim(args...)
	c.check(err)
	return out
}

func (c *Cluster) sim(args ...string) (string, error) {
	ctx, cancel := c.patience()
	defer cancel()
	command := exec.CommandContext(ctx, filepath.Join(c.options.SwitchyardBin, "switchyard-sim"),
		append([]string{"--dir", c.Path("sim")}, args...)...)
	out, err := command.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("switchyard-sim %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// Board is the present state of the hardware.
func (c *Cluster) Board() Board {
	board, err := c.board()
	c.check(err)
	return board
}

func (c *Cluster) board() (board Board, err error) {
	text, err := c.sim("status", "-o", "json")
	if err == nil {
		err = json.Unmarshal([]byte(text), &board)
	}
	return board, err
}

// WaitBoard asks until the hardware is as `done` says: it tells nobody of a change.
func (c *Cluster) WaitBoard(what string, done func(Board) bool) Board {
	ctx, cancel := c.patience()
	defer cancel()
	for {
		board := c.Board()
		if done(board) {
			return board
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			c.check(fmt.Errorf("waiting for %s; active are %v: %w", what, board.Active(), cause(ctx)))
		}
	}
}

// Active are the partitions that Fabric Manager routes.
func (b Board) Active() (active []Partition) {
	for _, partition := range b.FM.Partitions {
		if partition.Active {
			active = append(active, partition)
		}
	}
	return active
}

// ByAddress finds a GPU.
func (b Board) ByAddress(address string) (GPU, bool) {
	for _, gpu := range b.GPUs {
		if gpu.Address == address {
			return gpu, true
		}
	}
	return GPU{}, false
}

// PartitionOf is the partition that consists of exactly these GPUs.
func (b Board) PartitionOf(addresses []string) (Partition, bool) {
	var modules []int
	for _, address := range addresses {
		gpu, found := b.ByAddress(address)
		if !found {
			return Partition{}, false
		}
		modules = append(modules, gpu.Module)
	}
	slices.Sort(modules)
	for _, partition := range b.FM.Partitions {
		if slices.Equal(partition.Modules, modules) {
			return partition, true
		}
	}
	return Partition{}, false
}
