// Package built builds the programs of this module for tests that run them
// as a user would: the gateway itself, and servers that stand in for others.
package built

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
)

// Program builds the command in a folder of this module, such as cmd/dockgate,
// into dir, and returns its path. It is linked statically, as what is shipped.
func Program(ctx context.Context, dir, folder string) (string, error) {
	file := filepath.Join(dir, path.Base(folder))
	command := exec.CommandContext(ctx, "go", "build", "-o", file, "github.com/dockgate/dockgate/"+folder)
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", folder, err, out)
	}
	return file, nil
}
