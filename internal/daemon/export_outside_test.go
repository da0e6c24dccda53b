package daemon

import (
	"github.com/dockgate/dockgate/internal/outside"
	"github.com/dockgate/dockgate/internal/sandbox"
)

// StatOutside is statOutside, for tests.
func StatOutside(host outside.Host, path string) (sandbox.HostPath, error) {
	return statOutside(host, path)
}
