package client

import (
	"io/fs"
	"os"
)

// likeness gives a file the mode of another. Who may read it is a matter of
// its folder, from which new files have it.
func likeness(fresh *os.File, like fs.FileInfo) error {
	return os.Chmod(fresh.Name(), like.Mode().Perm())
}
