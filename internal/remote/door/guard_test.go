package door_test

import (
	"errors"
	"net/netip"
	"net/url"
	"testing"

	"github.com/dockgate/dockgate/internal/remote/door"
)

func TestGuardRefusesWhatIsNotPublic(t *testing.T) {
	tests := []struct {
		address string
		kind    string // "" is let through
	}{
		{"1.1.1.1:443", ""},
		{"[2606:4700::1111]:443", ""},
		{"172.32.0.1:443", ""},
		{"100.128.0.1:443", ""},
		{"127.0.0.1:80", "an address of this machine"},
		{"127.9.9.9:80", "an address of this machine"},
		{"[::1]:80", "an address of this machine"},
		{"0.0.0.0:80", "an address of this network"},
		{"[::]:80", "an address of this network"},
		{"10.1.2.3:80", "a private address"},
		{"172.16.0.1:80", "a private address"},
		{"172.31.255.255:80", "a private address"},
		{"192.168.1.1:80", "a private address"},
		{"[fd12:3456::1]:80", "a private address"},
		{"[fc00::1]:80", "a private address"},
		{"[fec0::1]:80", "a private address"},
		{"100.64.0.1:80", "an address of a carrier's network"},
		{"100.127.255.255:80", "an address of a carrier's network"},
		{"169.254.1.1:80", "a link-local address"},
		{"[fe80::1]:80", "a link-local address"},
		{"[fe80::1%eth0]:80", "a link-local address"},
		{"169.254.169.254:80", "an address of a cloud's metadata"},
		{"169.254.170.2:80", "an address of a cloud's metadata"},
		{"100.100.100.200:80", "an address of a cloud's metadata"},
		{"168.63.129.16:80", "an address of a cloud's metadata"},
		{"[fd00:ec2::254]:80", "an address of a cloud's metadata"},
		{"[::ffff:169.254.169.254]:80", "an address of a cloud's metadata"},
		{"[::ffff:127.0.0.1]:80", "an address of this machine"},
		{"[::ffff:a00:1]:80", "a private address"},
		{"[::127.0.0.1]:80", "an address of this machine"},
		{"[::8.8.8.8]:80", "a reserved address"},
		{"[64:ff9b::10.0.0.1]:80", "a private address"},
		{"[64:ff9b::8.8.8.8]:80", ""},
		{"[64:ff9b:1::1]:80", "a private address"},
		{"[2002:7f00:1::]:80", "an address of this machine"},
		{"[2002:808:808::]:80", ""},
		{"[2001:0:5ef5:79fd::1]:80", "a reserved address"},
		{"[2001:db8::1]:80", "an address for documentation"},
		{"192.0.2.1:80", "an address for documentation"},
		{"198.18.0.1:80", "an address for benchmarks"},
		{"224.0.0.1:80", "a multicast address"},
		{"[ff02::1]:80", "a multicast address"},
		{"255.255.255.255:80", "a reserved address"},
		{"[4000::1]:80", "a reserved address"},
	}
	for _, tt := range tests {
		err := door.Check(nil, tt.address)
		var refused *door.AddressError
		switch {
		case tt.kind == "" && err != nil:
			t.Errorf("Check(%s) = %v, want nil", tt.address, err)
		case tt.kind != "" && (!errors.As(err, &refused) || refused.Kind != tt.kind):
			t.Errorf("Check(%s) = %v, want an address that is %s", tt.address, err, tt.kind)
		}
	}
	if err := door.Check(nil, "example.com:80"); err == nil {
		t.Error("Check(example.com:80) = nil, want an error: a name is no address")
	}
}

func TestNamed(t *testing.T) {
	tests := []struct {
		url     string
		address string
		want    bool
	}{
		{"http://127.0.0.1:8080/mcp", "127.0.0.1:8080", true},
		{"http://127.0.0.1:8080/mcp", "127.0.0.2:8080", false},
		{"http://127.0.0.1:8080/mcp", "[::ffff:127.0.0.1]:8080", true},
		{"http://localhost/", "127.0.0.1:80", true},
		{"http://LOCALHOST./", "[::1]:80", true},
		{"http://a.localhost/", "[::1]:80", true},
		{"http://localhost/", "10.0.0.1:80", false},
		{"http://localhost.example.com/", "127.0.0.1:80", false},
		{"http://[::1]/", "[::1]:80", true},
		{"http://[::ffff:10.0.0.1]/", "10.0.0.1:80", true},
		{"http://10.0.0.1/", "10.0.0.2:80", false},
		{"http://2130706433/", "127.0.0.1:80", false}, // a name to us, whatever it resolves to
		{"http://0x7f.1/", "127.0.0.1:80", false},
	}
	for _, tt := range tests {
		u, err := url.Parse(tt.url)
		if err != nil {
			t.Fatal(err)
		}
		got := door.Check(u, tt.address) == nil
		if got != tt.want {
			t.Errorf("a grant of %s lets %s pass: %v, want %v", tt.url, tt.address, got, tt.want)
		}
	}
}

func FuzzGuard(f *testing.F) {
	f.Add("127.0.0.1:80")
	f.Add("[::ffff:10.0.0.1]:80")
	f.Add("[2002:7f00:1::]:1")
	f.Fuzz(func(t *testing.T, address string) {
		at, err := netip.ParseAddrPort(address)
		allowed := door.Check(nil, address) == nil
		if err != nil {
			if allowed {
				t.Fatalf("Check(%q) = nil, want an error", address)
			}
			return
		}
		addr := at.Addr().Unmap()
		if allowed && (!addr.IsGlobalUnicast() || addr.IsPrivate() || addr.IsLoopback()) {
			t.Fatalf("Check(%q) = nil, want an error", address)
		}
	})
}
