package host

import (
	"fmt"
	"os"
	"syscall"
)

// ownerOf returns "uid:gid".
func ownerOf(info os.FileInfo) string {
	if owner, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprintf("%d:%d", owner.Uid, owner.Gid)
	}
	return ""
}
