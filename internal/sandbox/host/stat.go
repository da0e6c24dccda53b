// Package host looks at paths of the machine that containers would mount.
//
// It follows every link, and tells what is there and whose it is. A gateway
// that runs in a container itself sees its own files where it was shown none of
// the host's: those it refuses, and whatever a link leads to.
package host

import (
	"os"
	"path/filepath"

	"github.com/dockgate/dockgate/internal/sandbox"
)

// Stat looks at a path of this machine.
func Stat(path string) (sandbox.HostPath, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return sandbox.HostPath{}, err
	}
	info, err := os.Stat(real)
	if err != nil {
		return sandbox.HostPath{}, err
	}
	return sandbox.HostPath{
		Real: real, Owner: ownerOf(info), Socket: !info.IsDir() && !info.Mode().IsRegular(), Folder: info.IsDir(),
	}, nil
}
