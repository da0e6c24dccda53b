//go:build unix

package client_test

import (
	"fmt"
	"io/fs"
	"syscall"
)

func owner(info fs.FileInfo) string {
	stat := info.Sys().(*syscall.Stat_t)
	return fmt.Sprintf("%d:%d", stat.Uid, stat.Gid)
}
