//go:build !linux

package host

import (
	"os"
	"path/filepath"

	"github.com/dockgate/dockgate/internal/sandbox"
)

// Stat looks at a path of this machine. Engines that run in a virtual
// machine map owners themselves, so none is given.
func Stat(path string) (sandbox.HostPath, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return sandbox.HostPath{}, err
	}
	info, err := os.Stat(real)
	if err != nil {
		return sandbox.HostPath{}, err
	}
	return sandbox.HostPath{Real: real, Socket: !info.IsDir() && !info.Mode().IsRegular(), Folder: info.IsDir()}, nil
}
