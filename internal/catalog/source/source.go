// Package source reads a file or a folder in whichever format it is: it tells
// the format by the content, and hands it to the package that knows it.
//
// What it does not recognise it takes for the native format, whose reader then
// says what is wrong. It reads no file but the ones it was pointed to, and what
// those say is theirs.
package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"go.yaml.in/yaml/v3"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/catalog/client"
	"github.com/dockgate/dockgate/internal/catalog/compose"
	"github.com/dockgate/dockgate/internal/catalog/docker"
	"github.com/dockgate/dockgate/internal/catalog/document"
	"github.com/dockgate/dockgate/internal/catalog/manifest"
	"github.com/dockgate/dockgate/internal/catalog/official"
	"github.com/dockgate/dockgate/internal/catalog/registry"
)

// A Format is one of those that can be read.
type Format string

// The formats.
const (
	Native       Format = "dockgate"
	Docker       Format = "docker catalog"
	DockerSource Format = "docker server.yaml"
	Client       Format = "client configuration"
	Custom       Format = "custom list"
	Manifest     Format = "manifest"
	Registry     Format = "local registry"
	Compose      Format = "compose file"
	Official     Format = "server.json"
)

// Load reads the file or folder at a path. The error is [catalog.Problems], or
// names the path and says why it cannot be read.
func Load(ctx context.Context, kind catalog.OriginKind, path string, around catalog.Surroundings) (catalog.File, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return catalog.File{}, fmt.Errorf("catalog %s: %w", path, fs.ErrNotExist)
	case err != nil:
		return catalog.File{}, fmt.Errorf("catalog: %w", err)
	case info.IsDir():
		return loadFolder(ctx, kind, path, around)
	}
	data, err := os.ReadFile(path) //nolint:gosec // the user names it
	if err != nil {
		return catalog.File{}, fmt.Errorf("catalog: %w", err)
	}
	return Parse(ctx, catalog.Origin{Catalog: path, Kind: kind}, data, around)
}

// A FolderError is a folder in which there is nothing to read.
type FolderError struct{ Path string }

// Error names the folder.
func (e *FolderError) Error() string {
	return fmt.Sprintf("catalog %s: is a folder without anything that can be read", e.Path)
}

// Hint says which folders can be read.
func (e *FolderError) Hint() string {
	return "name a file, or a folder with a Compose file, of NAME/server.yaml, or such as ~/.docker/mcp or ~/.mcp-server-registry"
}

func loadFolder(ctx context.Context, kind catalog.OriginKind, path string, around catalog.Surroundings) (catalog.File, error) {
	switch {
	case docker.IsHome(path):
		return docker.LoadHome(kind, path)
	case len(docker.Sources(path)) > 0:
		return docker.LoadSources(kind, path)
	case len(compose.Find(path)) > 0:
		return compose.LoadFolder(ctx, kind, path, around)
	case registry.IsFolder(path):
		return registry.LoadFolder(kind, path, around)
	}
	return catalog.File{}, &FolderError{Path: path}
}

// Parse reads a file in whichever format it is. One that a client keeps and
// that names no server, or is empty, has none.
func Parse(ctx context.Context, origin catalog.Origin, data []byte, around catalog.Surroundings) (catalog.File, error) {
	if len(bytes.TrimSpace(data)) == 0 && client.Keeps(origin.Catalog) {
		return catalog.File{Origin: origin}, nil
	}
	return catalog.ParseWith(origin, data, func(r *document.Reader, root *yaml.Node, origin catalog.Origin) catalog.File {
		format := recognize(root)
		written := document.Member(root, "servers") != nil && document.Member(root, "version") != nil
		if format == Native && !written && client.Keeps(origin.Catalog) {
			format = Client
		}
		switch format {
		case Docker:
			return docker.Read(r, root, origin)
		case DockerSource:
			return docker.ReadSource(r, root, origin)
		case Client:
			return client.Read(r, root, origin, around)
		case Custom:
			return client.ReadCustom(r, root, origin, around)
		case Registry:
			return registry.Read(r, root, origin, around)
		case Official:
			return official.Read(r, root, origin, around)
		case Compose:
			return compose.Read(ctx, r, root, origin, data, around)
		case Manifest:
			return manifest.Read(r, root, origin, around)
		}
		return catalog.Read(r, root, origin)
	})
}

// Recognize tells the format of a file by its content; the path says no more
// than whether it is JSON.
func Recognize(path string, data []byte) Format {
	if root := document.New(path).Open(data, ""); root != nil {
		return recognize(root)
	}
	return Native
}

func recognize(root *yaml.Node) Format {
	has := func(name string, kind yaml.Kind) bool {
		member := document.Member(root, name)
		return member != nil && member.Kind == kind
	}
	switch {
	case manifest.Matches(root):
		return Manifest
	case has("servers", yaml.MappingNode) && has("version", yaml.ScalarNode):
		return Native
	case client.Matches(root):
		return Client
	case client.MatchesCustom(root):
		return Custom
	case official.Matches(root):
		return Official
	case compose.Matches(root):
		return Compose
	case has("registry", yaml.MappingNode):
		return Docker
	case has("name", yaml.ScalarNode) && (has("about", yaml.MappingNode) || has("run", yaml.MappingNode) || has("meta", yaml.MappingNode)):
		return DockerSource
	case registry.Matches(root):
		return Registry
	}
	return Native
}
