// Command images builds the images of the demo, the relay and the gateway, and images of
// MCP servers that nobody here wrote, for the tests. It needs no image registry: every image is
// made from scratch, out of static Go programs, or of a Node.js binary, the
// libraries of this machine and npm packages.
//
//	images [NAME…]
//
// builds those images, or all. An image that the engine has with the same
// content is left as it is.
//
//	demo                dockgate/demo, from images/demo
//	relay               dockgate/relay, from images/relay
//	gateway             dockgate/gateway, from images/gateway
//	everything          npm @modelcontextprotocol/server-everything
//	filesystem          npm @modelcontextprotocol/server-filesystem, serves /data
//	mark3labs           mark3labs' filesystem server, serves /data
//	conformance         the Go SDK's conformance server, both eras
//	conformance-legacy  the same, versions up to 2025-11-25 only
//	conformance-modern  the same, version 2026-07-28 only
//	faulty              test/servers/faulty, which does what a server must not
//	web                 test/servers/web, which listens on a port
//	node                Node.js and npm, in which packages are installed
//	python              this machine's Python and pip, in which packages are
//	                    installed; skipped, and said so, where there is none
//
// All but the demo, the relay and the gateway are tagged dockgate-test/NAME.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/moby/moby/client"

	"github.com/dockgate/dockgate/test/engine"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

// An image is what is to be built.
type image struct {
	name string
	tag  string
	// layers and config are made when the image is.
	make func(context.Context, *workshop) ([]layer, config, error)
}

func images() []image {
	const npmServers = "@modelcontextprotocol/server-"
	return []image{
		{"demo", "dockgate/demo:latest", demo},
		{"relay", "dockgate/relay:latest", relay},
		{"gateway", "dockgate/gateway:latest", gateway},
		{"everything", "dockgate-test/everything:latest", npmServer(npmServers+"everything", "2026.8.31")},
		{"filesystem", "dockgate-test/filesystem:latest", npmServer(npmServers+"filesystem", "2026.8.31", "/data")},
		{"mark3labs", "dockgate-test/mark3labs:latest", mark3labs},
		{"conformance", "dockgate-test/conformance:latest", conformance("")},
		{"conformance-legacy", "dockgate-test/conformance-legacy:latest", conformance("2025-11-25 2025-06-18 2025-03-26 2024-11-05")},
		{"conformance-modern", "dockgate-test/conformance-modern:latest", conformance("2026-07-28")},
		{"faulty", "dockgate-test/faulty:latest", faulty},
		{"web", "dockgate-test/web:latest", web},
		{"node", "dockgate-test/node:latest", nodeRuntime},
		{"python", "dockgate-test/python:latest", pythonRuntime},
	}
}

func run(ctx context.Context, names []string) (err error) {
	wanted := images()
	if len(names) > 0 {
		wanted = slices.DeleteFunc(wanted, func(i image) bool { return !slices.Contains(names, i.name) })
		if len(wanted) != len(names) {
			return fmt.Errorf("unknown image among %s", strings.Join(names, ", "))
		}
	}
	docker, err := engine.Connect(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, docker.Close()) }()
	version, err := docker.ServerVersion(ctx, client.ServerVersionOptions{})
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "dockgate-images-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	w := &workshop{dir: dir, arch: version.Arch, built: make(map[string]layer)}
	for _, i := range wanted {
		layers, config, err := i.make(ctx, w)
		if errors.Is(err, errNoPython) {
			fmt.Printf("%s: not built: %v\n", i.tag, err)
			continue
		}
		if err != nil {
			return fmt.Errorf("image %s: %w", i.tag, err)
		}
		loaded, err := load(ctx, docker, i.tag, version.Arch, layers, config)
		if err != nil {
			return fmt.Errorf("image %s: %w", i.tag, err)
		}
		fmt.Printf("%s: %s\n", i.tag, loaded)
	}
	return nil
}
