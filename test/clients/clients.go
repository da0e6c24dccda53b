// Package clients installs MCP clients that nobody here wrote: the inspector,
// the conformance suite and both lines of the TypeScript SDK, with a Node.js
// that runs them.
package clients

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/dockgate/dockgate/test/npm"
)

const (
	inspector   = "@modelcontextprotocol/inspector"
	conformance = "@modelcontextprotocol/conformance"
	typescript  = "@modelcontextprotocol/sdk@1.32.2"
	typescript2 = "@modelcontextprotocol/client@2.4.0"
)

// session plays one session through the TypeScript SDK.
//
//go:embed session.mjs
var session []byte

// Paths are where the clients are.
type Paths struct {
	// Node is the Node.js binary.
	Node string
	// Inspector is the script of the MCP inspector; "--cli" makes it a client
	// of the command line.
	Inspector string
	// Conformance is the script of the conformance suite.
	Conformance string
	// Session is a script that plays a session through the TypeScript SDK, and
	// Packages the folder that it is given as its first argument.
	Session, Packages string
}

// Install returns the clients. It installs them if no call did before. On
// Linux it brings the Node.js that runs them, elsewhere the machine's is used.
func Install(ctx context.Context) (Paths, error) {
	packages := []string{inspector + "@2.12.0", conformance + "@0.2.0-alpha.12", typescript, typescript2}
	node, binary, err := npm.Node(runtime.GOARCH)
	bring := runtime.GOOS == "linux" && err == nil
	if bring {
		packages = append(packages, node)
	}
	folder, err := npm.Install(ctx, packages...)
	if err != nil {
		return Paths{}, fmt.Errorf("test clients: %w", err)
	}
	paths := Paths{Packages: string(folder), Session: filepath.Join(string(folder), "session.mjs")}
	if err := write(paths.Session, session); err != nil {
		return Paths{}, fmt.Errorf("test clients: %w", err)
	}
	if bring {
		name, _, _ := strings.Cut(node, "@")
		paths.Node = folder.Path(name, binary)
	} else if paths.Node, err = exec.LookPath("node"); err != nil {
		return Paths{}, fmt.Errorf("test clients: install Node.js 22.19 or newer: %w", err)
	}
	for pkg, path := range map[string]*string{inspector: &paths.Inspector, conformance: &paths.Conformance} {
		script, err := folder.Script(pkg)
		if err != nil {
			return Paths{}, fmt.Errorf("test clients: %w", err)
		}
		*path = folder.Path(pkg, script)
	}
	return paths, nil
}

// write puts a file in place at once, for those who run it already.
func write(path string, content []byte) error {
	file, err := os.CreateTemp(filepath.Dir(path), "new-")
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

// Command returns a command that runs a script with Node, and that finds this
// Node, not the machine's, if it runs another.
func (p Paths) Command(ctx context.Context, script string, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, p.Node, append([]string{script}, args...)...)
	command.Env = append(os.Environ(), "PATH="+filepath.Dir(p.Node)+string(os.PathListSeparator)+os.Getenv("PATH"))
	return command
}
