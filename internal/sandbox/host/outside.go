package host

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/dockgate/dockgate/internal/outside"
	"github.com/dockgate/dockgate/internal/sandbox"
)

// StatOutside looks at a path of the host from inside a container, for which
// host is what the gateway was told of it. What the
// gateway was not told of is the container's own, and refused; so is what a
// link leads to.
func StatOutside(host outside.Host, path string) (sandbox.HostPath, error) {
	if !host.Sees(path) {
		return sandbox.HostPath{}, host.Unseen(path)
	}
	found, err := Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if target, ok := leads(path); ok && !host.Sees(target) {
			return sandbox.HostPath{}, host.Unseen(target)
		}
	}
	if err != nil {
		return sandbox.HostPath{}, err
	}
	if !host.Sees(found.Real) {
		return sandbox.HostPath{}, host.Unseen(found.Real)
	}
	if found.Owner == "0:0" && host.User != "" {
		// Where the engine is in a virtual machine, what it shares of the host
		// seems to be whose it is not; then the home folder does too.
		if home, err := Stat(host.Home); err == nil && home.Owner == "0:0" {
			found.Owner = host.User
		}
	}
	return found, nil
}

// leads returns where a link leads that leads nowhere here: the first part of
// the path that is a link to something that does not exist.
func leads(path string) (target string, ok bool) {
	for part := path; part != filepath.Dir(part); part = filepath.Dir(part) {
		if link, err := os.Readlink(part); err == nil {
			if !filepath.IsAbs(link) {
				link = filepath.Join(filepath.Dir(part), link)
			}
			return filepath.Clean(link), true
		}
	}
	return "", false
}
