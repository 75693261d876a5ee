// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
)

const busybox = "/bin/busybox"

// writeImage makes image.tar: an OCI archive with busybox, under the names of the pause image and of
// Image. No registry takes part.
func (c *Cluster) writeImage() error {
	program, err := staticBusybox()
	if err != nil {
		return err
	}
	layer := archive(func(add addFile) {
		add(tar.Header{Name: "bin/busybox", Mode: 0o755}, program)
		for _, name := range []string{
			"sh", "sleep", "cat", "ls", "env", "echo", "true", "find", "stat", "grep", "wget", "kill", "wc",
		} {
			add(tar.Header{Name: "bin/" + name, Typeflag: tar.TypeSymlink, Linkname: "busybox"}, nil)
		}
	})
	const kind = "application/vnd.oci.image."
	blobs := map[string][]byte{}
	put := func(mediaType string, data []byte) map[string]any {
		digest := fmt.Sprintf("sha256:%x", sha256.Sum256(data))
		blobs[digest] = data
		return map[string]any{"mediaType": kind + mediaType, "digest": digest, "size": len(data)}
	}
	text := func(value any) []byte {
		data, err := json.Marshal(value)
		if err != nil {
			panic(err) // of maps and strings
		}
		return data
	}
	rootfs := put("layer.v1.tar", layer)
	config := put("config.v1+json", text(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux",
		"rootfs": map[string]any{"type": "layers", "diff_ids": []any{rootfs["digest"]}},
		"config": map[string]any{
			"Entrypoint": []string{"/bin/sleep"}, "Cmd": []string{"1000000"}, "Env": []string{"PATH=/bin"},
		},
	}))
	manifest := put("manifest.v1+json", text(map[string]any{
		"schemaVersion": 2, "mediaType": kind + "manifest.v1+json",
		"config": config, "layers": []any{rootfs},
	}))
	var manifests []any
	for _, name := range []string{pauseImage, Image} {
		manifests = append(manifests, map[string]any{
			"mediaType": manifest["mediaType"], "digest": manifest["digest"], "size": manifest["size"],
			"annotations": map[string]string{"io.containerd.image.name": name},
		})
	}
	whole := archive(func(add addFile) {
		add(tar.Header{Name: "oci-layout"}, []byte(`{"imageLayoutVersion":"1.0.0"}`))
		add(tar.Header{Name: "index.json"}, text(map[string]any{
			"schemaVersion": 2, "mediaType": kind + "index.v1+json", "manifests": manifests,
		}))
		for digest, data := range blobs {
			add(tar.Header{Name: "blobs/sha256/" + digest[len("sha256:"):]}, data)
		}
	})
	return os.WriteFile(c.Path("image.tar"), whole, 0o600)
}

func staticBusybox() ([]byte, error) {
	program, err := os.ReadFile(busybox)
	if err != nil {
		return nil, fmt.Errorf("%w; run scripts/setup (package busybox-static)", err)
	}
	file, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", busybox, err)
	}
	for _, part := range file.Progs {
		if part.Type == elf.PT_INTERP {
			return nil, errors.New(busybox + ": is linked dynamically, and the image holds nothing else; " +
				"install busybox-static in its place")
		}
	}
	return program, nil
}

type addFile func(header tar.Header, data []byte)

// archive cannot fail: it writes to memory what it made itself.
func archive(fill func(add addFile)) []byte {
	var out bytes.Buffer
	writer := tar.NewWriter(&out)
	fill(func(header tar.Header, data []byte) {
		header.Size = int64(len(data))
		if header.Mode == 0 {
			header.Mode = 0o644
		}
		if err := writer.WriteHeader(&header); err != nil {
			panic(err)
		}
		if _, err := writer.Write(data); err != nil {
			panic(err)
		}
	})
	if err := writer.Close(); err != nil {
		panic(err)
	}
	return out.Bytes()
}
