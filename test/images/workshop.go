package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/dockgate/dockgate/test/npm"
)

type config = v1.Config

// A workshop makes the layers of images for one architecture.
type workshop struct {
	// dir holds what is made; it is removed in the end.
	dir  string
	arch string
	// built are the layers by their names; images share them.
	built map[string]layer
}

func (w *workshop) path(name string) string { return filepath.Join(w.dir, name) }

// once returns a layer, whose entries are listed the first time only.
func (w *workshop) once(name string, list func() ([]entry, error)) (layer, error) {
	if l, ok := w.built[name]; ok {
		return l, nil
	}
	entries, err := list()
	if err != nil {
		return "", err
	}
	l, err := write(w.path(name+".tar"), entries)
	w.built[name] = l
	return l, err
}

// goBuild builds a static program for the engine and returns its path.
func (w *workshop) goBuild(ctx context.Context, name, dir string, args ...string) (string, error) {
	binary := w.path(name)
	command := exec.CommandContext(ctx, "go", slices.Concat([]string{"build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid=", "-o", binary}, args)...)
	command.Dir = dir
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+w.arch)
	if out, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return binary, nil
}

// program returns the entries of a program at the image's root.
func program(name, binary string) []entry {
	return append(common(), entry{name: name, mode: 0o755, source: binary})
}

func demo(ctx context.Context, w *workshop) ([]layer, config, error) {
	// As images/demo/Dockerfile has it: the program, and nothing else.
	l, err := w.once("demo", func() ([]entry, error) {
		binary, err := w.goBuild(ctx, "demo", "", "./images/demo")
		return []entry{{name: "demo", mode: 0o755, source: binary}}, err
	})
	return []layer{l}, config{Entrypoint: []string{"/demo"}, User: "65532:65532"}, err
}

func relay(ctx context.Context, w *workshop) ([]layer, config, error) {
	// As images/relay/Dockerfile has it.
	l, err := w.once("relay", func() ([]entry, error) {
		binary, err := w.goBuild(ctx, "relay", "", "./images/relay")
		return []entry{{name: "relay", mode: 0o755, source: binary}}, err
	})
	return []layer{l}, config{Entrypoint: []string{"/relay"}}, err
}

func gateway(ctx context.Context, w *workshop) ([]layer, config, error) {
	// As images/gateway/Dockerfile has it.
	l, err := w.once("gateway", func() ([]entry, error) {
		binary, err := w.goBuild(ctx, "dockgate", "", "./cmd/dockgate")
		return append(certificates(), entry{name: "dockgate", mode: 0o755, source: binary}, folder("data", 0o700, 0)), err
	})
	return []layer{l}, config{
		Entrypoint: []string{"/dockgate"}, Cmd: []string{"serve"}, WorkingDir: "/data",
		Env: []string{"DOCKGATE_IMAGE=dockgate/gateway", "DOCKGATE_STATE=/data", "HOME=/data"}, Volumes: map[string]struct{}{"/data": {}},
	}, err
}

// certificates are the authorities that this machine trusts, if it has them
// where Linux looks.
func certificates() []entry {
	const bundle = "/etc/ssl/certs/ca-certificates.crt"
	if _, err := os.Stat(bundle); err != nil {
		return nil
	}
	return []entry{{name: bundle[1:], mode: 0o644, source: bundle}}
}

// faulty declares a volume and runs as root, as images do without a thought.
func faulty(ctx context.Context, w *workshop) ([]layer, config, error) {
	l, err := w.once("faulty", func() ([]entry, error) {
		binary, err := w.goBuild(ctx, "faulty", "", "./test/servers/faulty")
		return program("faulty", binary), err
	})
	return []layer{l}, config{Entrypoint: []string{"/faulty"}, Volumes: map[string]struct{}{"/volume": {}}}, err
}

// web listens on a port.
func web(ctx context.Context, w *workshop) ([]layer, config, error) {
	l, err := w.once("web", func() ([]entry, error) {
		binary, err := w.goBuild(ctx, "web", "", "./test/servers/web")
		return program("web", binary), err
	})
	return []layer{l}, config{Entrypoint: []string{"/web"}, User: "65532:65532"}, err
}

// mark3labs builds the server in a module of its own: what it needs is none of
// this module's.
func mark3labs(ctx context.Context, w *workshop) ([]layer, config, error) {
	const pkg, name = "github.com/mark3labs/mcp-filesystem-server", "mcp-filesystem-server"
	l, err := w.once(name, func() ([]entry, error) {
		dir := w.path("mark3labs")
		if err := os.Mkdir(dir, 0o700); err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module build\n\ngo 1.24\n\nrequire "+pkg+" v0.11.1\n"), 0o600); err != nil {
			return nil, err
		}
		binary, err := w.goBuild(ctx, name, dir, "-mod=mod", pkg)
		return program(name, binary), err
	})
	return []layer{l}, server([]string{"/" + name}, "/data"), err
}

// server is the configuration of a server that nobody here wrote.
func server(entrypoint []string, args ...string) config {
	return config{
		Entrypoint: entrypoint,
		Cmd:        args,
		User:       fmt.Sprintf("%d:%d", serverID, serverID),
		WorkingDir: "/data",
		Env:        []string{"PATH=/usr/bin:/bin", "HOME=/data"},
	}
}

// conformance returns how to make an image of the Go SDK's conformance server
// that speaks some versions of the protocol, all of them if versions is empty.
//
// The server has no flag for that, and is a main package which nobody can
// import. So it is built from its source as it is but for one line, which
// takes the versions from a variable.
func conformance(versions string) func(context.Context, *workshop) ([]layer, config, error) {
	return func(ctx context.Context, w *workshop) ([]layer, config, error) {
		const name = "everything-server"
		l, err := w.once(name, func() ([]entry, error) {
			binary, err := w.buildConformance(ctx, name)
			return program(name, binary), err
		})
		c := server([]string{"/" + name})
		if versions != "" {
			c.Env = append(c.Env, versionsVariable+"="+versions)
		}
		return []layer{l}, c, err
	}
}

// versionsVariable holds the versions of the protocol that the conformance
// server speaks, separated by spaces.
const versionsVariable = "MCP_PROTOCOL_VERSIONS"

func (w *workshop) buildConformance(ctx context.Context, name string) (string, error) {
	const sdk = "github.com/modelcontextprotocol/go-sdk"
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", sdk).Output()
	if err != nil {
		return "", fmt.Errorf("go list %s: %w", sdk, err)
	}
	source, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), "conformance", name, "main.go"))
	if err != nil {
		return "", err
	}
	const options = "opts := &mcp.ServerOptions{\n"
	if strings.Count(string(source), options) != 1 {
		return "", fmt.Errorf("the source of %s is not as expected", name)
	}
	patched := strings.Replace(string(source), options, options+"\t\tSupportedProtocolVersions: strings.Fields(os.Getenv(\""+versionsVariable+"\")),\n", 1)
	file := w.path("conformance.go")
	if err := os.WriteFile(file, []byte(patched), 0o600); err != nil {
		return "", err
	}
	// The file is given to the compiler as if it lay in this module, for the
	// modules that it needs.
	root, err := filepath.Abs(".")
	if err != nil {
		return "", err
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, "test", "images", name, "main.go"): file}})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(w.path("overlay.json"), overlay, 0o600); err != nil {
		return "", err
	}
	return w.goBuild(ctx, name, "", "-overlay", w.path("overlay.json"), "./test/images/"+name)
}

// npmServer returns how to make an image of an npm package that is a server.
func npmServer(pkg, version string, args ...string) func(context.Context, *workshop) ([]layer, config, error) {
	return func(ctx context.Context, w *workshop) ([]layer, config, error) {
		base, err := w.node(ctx)
		if err != nil {
			return nil, config{}, err
		}
		installed, err := npm.Install(ctx, pkg+"@"+version)
		if err != nil {
			return nil, config{}, err
		}
		script, err := installed.Script(pkg)
		if err != nil {
			return nil, config{}, err
		}
		app, err := w.once(strings.ReplaceAll(pkg, "/", "-"), func() ([]entry, error) {
			return tree(filepath.Join(string(installed), "node_modules"), "app/node_modules")
		})
		return []layer{base, app}, server([]string{"/usr/bin/node", "/app/node_modules/" + pkg + "/" + script}, args...), err
	}
}

// nodeRuntime is an image with Node.js and npm, in which packages are installed.
func nodeRuntime(ctx context.Context, w *workshop) ([]layer, config, error) {
	base, err := w.node(ctx)
	if err != nil {
		return nil, config{}, err
	}
	l, err := w.once("npm", func() ([]entry, error) {
		installed, err := npm.Install(ctx, "npm@10.9.2")
		if err != nil {
			return nil, err
		}
		entries, err := tree(filepath.Join(string(installed), "node_modules"), "usr/lib/node_modules")
		return append(entries, entry{
			name: "usr/bin/npm", mode: 0o755,
			content: "#!/usr/bin/node\nrequire('/usr/lib/node_modules/npm/lib/cli.js')(process)\n",
		}), err
	})
	return []layer{base, l}, config{Env: []string{"PATH=/usr/bin:/bin"}, Cmd: []string{"/usr/bin/node"}}, err
}

// node returns the layer that Node.js servers share: the binary, the libraries
// of this machine that it loads, and what a program expects of a root.
func (w *workshop) node(ctx context.Context) (layer, error) {
	return w.once("node", func() ([]entry, error) {
		if runtime.GOOS != "linux" || runtime.GOARCH != w.arch {
			return nil, fmt.Errorf("needs a Linux machine of the engine's architecture %s, for its C library", w.arch)
		}
		pkg, below, err := npm.Node(w.arch)
		if err != nil {
			return nil, err
		}
		installed, err := npm.Install(ctx, pkg)
		if err != nil {
			return nil, err
		}
		name, _, _ := strings.Cut(pkg, "@")
		binary := installed.Path(name, below)
		entries := append(rootFiles(), entry{name: "usr/bin/node", mode: 0o755, source: binary})
		libraries, err := loads(ctx, binary)
		if err != nil {
			return nil, fmt.Errorf("%w\nNode.js needs them (Debian: apt-get install libstdc++6)", err)
		}
		for _, library := range libraries {
			entries = append(entries, entry{name: strings.TrimPrefix(library, "/"), mode: 0o755, source: library})
		}
		return entries, nil
	})
}

// rootFiles are what a program of this machine expects of a root.
func rootFiles() []entry {
	return slices.Concat(common(), certificates(), []entry{
		{name: "etc/passwd", mode: 0o644, content: "root:x:0:0:root:/root:/sbin/nologin\nnode:x:1000:1000:node:/data:/sbin/nologin\n"},
		{name: "etc/group", mode: 0o644, content: "root:x:0:\nnode:x:1000:\n"},
		{name: "etc/nsswitch.conf", mode: 0o644, content: "hosts: files dns\n"},
	})
}

// loads returns the paths of the libraries that binaries load, their loader
// included.
func loads(ctx context.Context, binaries ...string) ([]string, error) {
	out, err := exec.CommandContext(ctx, "ldd", binaries...).CombinedOutput() //nolint:gosec // files that the caller has found
	if err != nil {
		return nil, fmt.Errorf("ldd: %w\n%s", err, out)
	}
	if strings.Contains(string(out), "not found") {
		return nil, fmt.Errorf("libraries are missing:\n%s", out)
	}
	var libraries []string
	for line := range strings.Lines(string(out)) {
		// Of several binaries, each has its name and a colon before its libraries.
		if found := regexp.MustCompile(`/\S+`).FindString(line); found != "" && !strings.HasSuffix(found, ":") && !slices.Contains(libraries, found) {
			libraries = append(libraries, found)
		}
	}
	return libraries, nil
}
