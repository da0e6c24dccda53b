//go:build !windows

package doctor

import "golang.org/x/sys/unix"

// freeSpace returns how many bytes an ordinary user may still write where the
// folder is.
func freeSpace(dir string) (uint64, error) {
	var found unix.Statfs_t
	if err := unix.Statfs(dir, &found); err != nil {
		return 0, err
	}
	return uint64(found.Bavail) * uint64(found.Bsize), nil //nolint:gosec,unconvert // the types differ between systems
}
