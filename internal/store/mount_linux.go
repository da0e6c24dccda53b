package store

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// networkKind returns the name of the shared file system that a folder is on,
// or "" if it is on a local one.
func networkKind(dir string) (string, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return "", &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	if kind := sharedMagic(int64(stat.Type)); kind != "" {
		return kind, nil
	}
	// FUSE has one number for local and for shared file systems, and a
	// virtual machine's host shares may have any: the mount table names them.
	var file unix.Stat_t
	if err := unix.Stat(dir, &file); err != nil {
		return "", &os.PathError{Op: "stat", Path: dir, Err: err}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", nil //nolint:nilerr // without /proc the numbers above have to do
	}
	device := fmt.Sprintf("%d:%d", unix.Major(uint64(file.Dev)), unix.Minor(uint64(file.Dev))) //nolint:unconvert // 32 bits on some systems
	return sharedType(mountType(bytes.NewReader(mounts), device)), nil
}

// sharedMagic names the shared file systems that statfs(2) numbers.
func sharedMagic(magic int64) string {
	switch magic {
	case unix.NFS_SUPER_MAGIC:
		return "nfs"
	case unix.SMB_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC:
		return "smb"
	case unix.V9FS_MAGIC:
		return "9p"
	case unix.CEPH_SUPER_MAGIC:
		return "ceph"
	case unix.AFS_SUPER_MAGIC, unix.AFS_FS_MAGIC:
		return "afs"
	default:
		return ""
	}
}

// sharedType returns kind if the mount table's type is that of a share between
// a host and a virtual machine, or of a network file system over FUSE.
func sharedType(kind string) string {
	switch kind {
	case "virtiofs", "fakeowner", "fuse.grpcfuse", "fuse.osxfs", "osxfs", "fuse.vmhgfs-fuse", "vboxsf", "prl_fs",
		"fuse.sshfs", "fuse.glusterfs", "fuse.s3fs", "fuse.rclone", "nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "lustre":
		return kind
	default:
		return ""
	}
}

// mountType finds the file system type of a device, "major:minor", in the
// format of proc_pid_mountinfo(5).
func mountType(mountinfo io.Reader, device string) string {
	lines := bufio.NewScanner(mountinfo)
	for lines.Scan() {
		before, after, found := strings.Cut(lines.Text(), " - ")
		fields := strings.Fields(before)
		if !found || len(fields) < 3 || fields[2] != device {
			continue
		}
		kind, _, _ := strings.Cut(after, " ")
		return kind
	}
	return ""
}
