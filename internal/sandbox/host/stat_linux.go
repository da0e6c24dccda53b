package host

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"

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
	found := sandbox.HostPath{Real: real, Socket: !info.IsDir() && !info.Mode().IsRegular(), Folder: info.IsDir()}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok {
		found.Owner = fmt.Sprintf("%d:%d", owner.Uid, owner.Gid)
	}
	return found, nil
}
