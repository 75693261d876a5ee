// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// View is what a container sees of itself.
type View struct {
	Env   map[string]string
	Nodes []DeviceNode // without those of every container (/dev/null, ...); by path
}

// DeviceNode is one of a container's.
type DeviceNode struct {
	Path   string
	Kind   string // "character special file" or "block special file"
	Number string // "4:1a": major and minor in hex
	Opens  bool   // for reading, by the container's process
}

// Paths of the view's nodes.
func (v View) Paths() (paths []string) {
	for _, node := range v.Nodes {
		paths = append(paths, node.Path)
	}
	return paths
}

const (
	envLine  = "ENV "
	nodeLine = "NODE "
	lastLine = "THAT IS ALL"
)

// Run by Container's command. The shell that opens a node is no session leader, so that a terminal
// among them does not become its own.
const insideScript = `
env | while read -r line; do echo "` + envLine + `$line"; done
find /dev \( -type c -o -type b \) | while read -r node; do
  case "$node" in
    /dev/null|/dev/zero|/dev/full|/dev/random|/dev/urandom|/dev/tty|/dev/console|/dev/pts/*) continue ;;
  esac
  opens=no
  if (: < "$node") 2> /dev/null; then opens=yes; fi
  echo "` + nodeLine + `$(stat -c '%n|%F|%t:%T' "$node")|$opens"
done
echo "` + lastLine + `"
`

// View reads what a container wrote about itself at its start.
func (c *Cluster) View(pod, container string) View {
	view, err := c.view(pod, container)
	if err != nil {
		err = fmt.Errorf("what container %s of pod %s says: %w", container, pod, err)
	}
	c.check(err)
	return view
}

func (c *Cluster) view(pod, container string) (View, error) {
	ctx, cancel := c.patience()
	defer cancel()
	stream, err := c.Client.CoreV1().Pods(defaultNamespace).GetLogs(pod,
		&corev1.PodLogOptions{Container: container, Follow: true}).Stream(ctx)
	if err != nil {
		return View{}, err
	}
	defer stream.Close()
	view := View{Env: map[string]string{}}
	lines := bufio.NewScanner(stream)
	for lines.Scan() {
		line := lines.Text()
		switch {
		case line == lastLine:
			slices.SortFunc(view.Nodes, func(a, b DeviceNode) int {
				return strings.Compare(a.Path, b.Path)
			})
			return view, nil
		case strings.HasPrefix(line, envLine):
			key, value, _ := strings.Cut(strings.TrimPrefix(line, envLine), "=")
			view.Env[key] = value
		case strings.HasPrefix(line, nodeLine):
			parts := strings.Split(strings.TrimPrefix(line, nodeLine), "|")
			if len(parts) != 4 {
				return View{}, fmt.Errorf("%q: not four fields", line)
			}
			view.Nodes = append(view.Nodes, DeviceNode{parts[0], parts[1], parts[2], parts[3] == "yes"})
		default:
			return View{}, fmt.Errorf("%q: not understood", line)
		}
	}
	if lines.Err() == nil {
		return View{}, io.ErrUnexpectedEOF
	}
	return View{}, lines.Err()
}

// PodExec runs a command in a container, now.
func (c *Cluster) PodExec(pod, container string, argv ...string) string {
	return c.Kubectl(append([]string{"exec", pod, "-c", container, "--"}, argv...)...)
}
