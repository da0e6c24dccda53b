package store_test

import (
	"strings"
	"testing"

	"github.com/dockgate/dockgate/internal/store"
)

func TestSharedFileSystems(t *testing.T) {
	const mountinfo = `22 27 0:20 / /sys rw,nosuid - sysfs sysfs rw
27 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
40 27 0:45 / /data rw,relatime - fakeowner /run/host_mark/Users rw
41 27 0:46 / /work rw,relatime master:3 propagate_from:1 - fuse.gocryptfs /enc rw
broken
42 27 0:47 /a\040b /share rw - nfs4 server:/a rw
`
	types := []struct{ device, want, refused string }{
		{"8:1", "ext4", ""},
		{"0:45", "fakeowner", "fakeowner"},
		{"0:46", "fuse.gocryptfs", ""},
		{"0:47", "nfs4", "nfs4"},
		{"9:9", "", ""},
	}
	for _, tt := range types {
		got := store.MountType(strings.NewReader(mountinfo), tt.device)
		if got != tt.want {
			t.Errorf("mountType(%s) = %q, want %q", tt.device, got, tt.want)
		}
		if refused := store.SharedType(got); refused != tt.refused {
			t.Errorf("sharedType(%s) = %q, want %q", got, refused, tt.refused)
		}
	}
	magics := []struct {
		magic int64
		want  string
	}{
		{0x6969, "nfs"},
		{0xff534d42, "smb"},
		{0xfe534d42, "smb"},
		{0x01021997, "9p"},
		{0xc36400, "ceph"},
		{0xef53, ""},
		{0x01021994, ""},
		{0x794c7630, ""},
		{0x58465342, ""},
		{0x9123683e, ""},
	}
	for _, tt := range magics {
		if got := store.SharedMagic(tt.magic); got != tt.want {
			t.Errorf("sharedMagic(%#x) = %q, want %q", tt.magic, got, tt.want)
		}
	}
}
