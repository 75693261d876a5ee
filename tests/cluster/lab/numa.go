// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

const numaNodes = 2

// writeNUMA makes the tree that takes the place of /sys/devices/system/node: two nodes, whatever the
// machine has, with its processors and half of its memory each.
func (c *Cluster) writeNUMA() error {
	cpus, err := machineCPUs()
	if err != nil {
		return err
	}
	memory, err := machineMemoryKB()
	if err != nil {
		return err
	}
	root := c.Path("numa")
	var problems []error
	write := func(name, text string) {
		path := filepath.Join(root, name)
		problems = append(problems, os.MkdirAll(filepath.Dir(path), 0o755),
			os.WriteFile(path, []byte(text+"\n"), 0o644))
	}
	for _, name := range []string{
		"online", "possible", "has_cpu", "has_memory", "has_normal_memory",
	} {
		write(name, fmt.Sprintf("0-%d", numaNodes-1))
	}
	for node := range numaNodes {
		folder := fmt.Sprintf("node%d/", node)
		mine := shareOf(cpus, node)
		write(folder+"cpulist", strings.Join(mine, ","))
		write(folder+"distance", map[int]string{0: "10 21", 1: "21 10"}[node])
		write(folder+"meminfo", fmt.Sprintf("Node %[1]d MemTotal:       %[2]d kB\n"+
			"Node %[1]d MemFree:        %[2]d kB", node, memory/numaNodes))
		for _, size := range []string{"2048", "1048576"} {
			for _, file := range []string{"nr", "free", "surplus"} {
				write(folder+"hugepages/hugepages-"+size+"kB/"+file+"_hugepages", "0")
			}
		}
		mask := 0
		for _, cpu := range mine {
			number, err := strconv.Atoi(cpu)
			problems = append(problems, err, os.Symlink("../../cpu/cpu"+cpu,
				filepath.Join(root, folder, "cpu"+cpu)))
			if number < 32 {
				mask |= 1 << number
			}
		}
		write(folder+"cpumap", fmt.Sprintf("%08x", mask))
	}
	return errors.Join(problems...)
}

// shareOf deals the processors out; a machine with one has a node without.
func shareOf(cpus []string, node int) (mine []string) {
	for i, cpu := range cpus {
		if i%numaNodes == node {
			mine = append(mine, cpu)
		}
	}
	return mine
}

func machineCPUs() (numbers []string, err error) {
	entries, err := os.ReadDir("/sys/devices/system/cpu")
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		number := strings.TrimPrefix(entry.Name(), "cpu")
		if _, err := strconv.Atoi(number); err == nil && number != entry.Name() {
			numbers = append(numbers, number)
		}
	}
	return numbers, nil
}

func machineMemoryKB() (int, error) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	total := regexp.MustCompile(`MemTotal:\s+(\d+) kB`).FindSubmatch(text)
	if total == nil {
		return 0, errors.New("/proc/meminfo: no MemTotal")
	}
	return strconv.Atoi(string(total[1]))
}
