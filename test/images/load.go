package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/google/go-containerregistry/pkg/compression"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/moby/moby/client"
	"golang.org/x/sync/errgroup"

	"github.com/dockgate/dockgate/test/engine"
)

// contentLabel holds the digest of all that an image was made of.
const contentLabel = "dockgate.test.content"

// load gives an image to the engine, unless it has it, and says which.
func load(ctx context.Context, docker *client.Client, tag, arch string, layers []layer, c config) (string, error) {
	image, content, err := assemble(arch, layers, c)
	if err != nil {
		return "", err
	}
	there, err := docker.ImageInspect(ctx, tag)
	if err != nil && !cerrdefs.IsNotFound(err) {
		return "", err
	}
	if err == nil && there.Config != nil && there.Config.Labels[contentLabel] == content {
		return "up to date", nil
	}
	reference, err := name.NewTag(tag)
	if err != nil {
		return "", err
	}
	reader, writer := io.Pipe()
	var both errgroup.Group
	both.Go(func() error {
		err := tarball.Write(reference, image, writer)
		writer.CloseWithError(err)
		return err
	})
	both.Go(func() error {
		err := engine.Load(ctx, docker, reader)
		reader.CloseWithError(err)
		return err
	})
	if err := both.Wait(); err != nil {
		return "", err
	}
	if there.ID != "" {
		if err := removeUntagged(ctx, docker, there.ID); err != nil {
			return "", err
		}
	}
	return "built", nil
}

// removeUntagged removes an image that no tag names any more. One that a
// container uses stays.
func removeUntagged(ctx context.Context, docker *client.Client, id string) error {
	there, err := docker.ImageInspect(ctx, id)
	if err == nil && len(there.RepoTags) == 0 {
		_, err = docker.ImageRemove(ctx, id, client.ImageRemoveOptions{PruneChildren: true})
	}
	if cerrdefs.IsConflict(err) || cerrdefs.IsNotFound(err) {
		return nil
	}
	return err
}

// assemble returns an image and the digest of its content.
func assemble(arch string, layers []layer, c config) (v1.Image, string, error) {
	parts := make([]v1.Layer, len(layers))
	var ids []string
	for i, l := range layers {
		part, err := tarball.LayerFromFile(string(l), tarball.WithCompression(compression.None))
		if err != nil {
			return nil, "", err
		}
		id, err := part.DiffID()
		if err != nil {
			return nil, "", err
		}
		ids = append(ids, id.String())
		parts[i] = part
	}
	text, err := json.Marshal([]any{arch, ids, c})
	if err != nil {
		return nil, "", err
	}
	content := fmt.Sprintf("sha256:%x", sha256.Sum256(text))

	image, err := mutate.AppendLayers(empty.Image, parts...)
	if err != nil {
		return nil, "", err
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, "", err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Config = "linux", arch, c
	file.Config.Labels = maps.Clone(c.Labels)
	if file.Config.Labels == nil {
		file.Config.Labels = make(map[string]string)
	}
	file.Config.Labels[contentLabel] = content
	image, err = mutate.ConfigFile(image, file)
	return image, content, err
}
