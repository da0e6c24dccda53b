//go:build unix

package client

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// likeness gives a file the mode and the owner of another.
func likeness(fresh *os.File, like fs.FileInfo) error {
	if err := fresh.Chmod(like.Mode().Perm()); err != nil {
		return err
	}
	wanted, ok := like.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	made, err := fresh.Stat()
	if err != nil {
		return err
	}
	if has, ok := made.Sys().(*syscall.Stat_t); ok && has.Uid == wanted.Uid && has.Gid == wanted.Gid {
		return nil
	}
	if err := fresh.Chown(int(wanted.Uid), int(wanted.Gid)); err != nil {
		return fmt.Errorf("it would not keep its owner: %w", err)
	}
	return nil
}
