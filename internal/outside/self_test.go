package outside_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/outside"
)

func TestID(t *testing.T) {
	id := strings.Repeat("0123456789abcdef", 4)
	tests := []struct{ name, in, want string }{
		{"Docker", "645 637 254:1 /var/lib/docker/volumes/dockgate/_data /data rw master:1 - ext4 /dev/vda1 rw\n" +
			"646 637 254:1 /var/lib/docker/containers/" + id + "/resolv.conf /etc/resolv.conf rw - ext4 /dev/vda1 rw\n" +
			"647 637 254:1 /var/lib/docker/containers/" + id + "/hostname /etc/hostname rw - ext4 /dev/vda1 rw\n", id},
		{"Podman", "900 899 0:25 /containers/overlay-containers/" + id + "/userdata/hostname /etc/hostname rw - tmpfs tmpfs rw\n", id},
		{"a volume with such a name", "645 637 254:1 /var/lib/docker/volumes/" + id + "/_data /data rw - ext4 /dev/vda1 rw\n", ""},
		{"no container", "22 1 254:1 / / rw,relatime - ext4 /dev/vda1 rw\n", ""},
		{"nothing", "", ""},
	}
	for _, tt := range tests {
		if got := outside.ID(tt.in); got != tt.want {
			t.Errorf("ID(%s) = %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestCommon(t *testing.T) {
	host := func(project string, folders ...string) outside.Container {
		return outside.Container{Volume: "mine", Host: outside.Host{Home: "/home/ann", User: "1:1", Project: project, Folders: folders}}
	}
	tests := []struct {
		name string
		in   outside.Container
		want outside.Container
	}{
		{"a project at home", host("/home/ann/shop"), host("")},
		{"a project elsewhere", host("/srv/shop"), host("", "/srv/shop")},
		{"folders", host("/srv/shop/a", "/srv/shop", "/home/ann/x", "/data"), host("", "/data", "/srv/shop")},
		{"nothing of the host", outside.Container{}, outside.Container{}},
	}
	for _, tt := range tests {
		got := tt.in.Common()
		if len(got.Host.Folders) == 0 {
			got.Host.Folders = nil
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("Common of %s (-want +got):\n%s", tt.name, diff)
		}
		if diff := cmp.Diff(tt.in.Host.Seen(), got.Host.Seen()); diff != "" {
			t.Errorf("Common of %s sees (-want +got):\n%s", tt.name, diff)
		}
	}
}

func FuzzID(f *testing.F) {
	f.Add("646 637 254:1 /var/lib/docker/containers/" + strings.Repeat("a", 64) + "/hostname /etc/hostname rw - ext4 /dev/vda1 rw\n")
	f.Fuzz(func(t *testing.T, mountinfo string) {
		if id := outside.ID(mountinfo); id != "" && (len(id) != 64 || !strings.Contains(mountinfo, "/"+id+"/")) {
			t.Errorf("ID(%q) = %q, want nothing or an id of it", mountinfo, id)
		}
	})
}
