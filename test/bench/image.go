package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"github.com/dockgate/dockgate/test/engine"
)

// buildSized builds the image of the server that returns large results. The
// engine keeps it: of the same content it is not built again.
func (w *world) buildSized(ctx context.Context) error {
	version, err := w.engine.ServerVersion(ctx, client.ServerVersionOptions{})
	if err != nil {
		return err
	}
	binary := filepath.Join(w.dir, "server")
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid=",
		"-o", binary, "github.com/dockgate/dockgate/test/bench/server")
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+version.Arch)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", sizedImage, err, out)
	}
	files, err := imageContext(binary)
	if err != nil {
		return err
	}
	built, err := w.engine.ImageBuild(ctx, files, client.ImageBuildOptions{Tags: []string{sizedImage}, Remove: true, ForceRemove: true})
	if err != nil {
		return fmt.Errorf("build %s: %w", sizedImage, err)
	}
	return errors.Join(engine.Read(built.Body), built.Body.Close())
}

func imageContext(binary string) (io.Reader, error) {
	program, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	var archive bytes.Buffer
	files := tar.NewWriter(&archive)
	for _, f := range []struct {
		name    string
		content []byte
	}{
		{"server", program},
		{"Dockerfile", []byte("FROM scratch\nCOPY server /server\nUSER 65532:65532\nENTRYPOINT [\"/server\"]\n")},
	} {
		if err := files.WriteHeader(&tar.Header{Name: f.name, Mode: 0o755, Size: int64(len(f.content))}); err != nil {
			return nil, err
		}
		if _, err := files.Write(f.content); err != nil {
			return nil, err
		}
	}
	return &archive, files.Close()
}

// hasDemo fails if the image of the demo is not there.
func (w *world) hasDemo(ctx context.Context) error {
	_, err := w.engine.ImageInspect(ctx, demoImage)
	if cerrdefs.IsNotFound(err) {
		return fmt.Errorf("the engine has no image %s: run make images", demoImage)
	}
	return err
}
