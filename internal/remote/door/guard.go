package door

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
)

// A guard decides which addresses may be connected to. It is asked with the
// address that a name was resolved to, just before the connection is made, so
// that a name which changes its address, and a redirect, cannot pass it. The
// zero guard lets public addresses through.
type guard struct {
	// granted are addresses that a person has approved though they are not
	// public.
	granted []netip.Prefix
}

// named returns the addresses that a URL names itself: its host, if that is
// an address, or those of this machine, if it is localhost. Whoever approves
// the URL has seen them.
func named(u *url.URL) []netip.Prefix {
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return nil
	}
	addr = addr.WithZone("").Unmap()
	return []netip.Prefix{netip.PrefixFrom(addr, addr.BitLen())}
}

// An AddressError is an address that must not be connected to.
type AddressError struct {
	Addr netip.Addr
	// Kind says what the address is, such as "a private address".
	Kind string
}

// Error names the address and its kind.
func (e *AddressError) Error() string {
	return fmt.Sprintf("%s is %s, and is not in the grant", e.Addr, e.Kind)
}

// Hint says how such an address is granted.
func (e *AddressError) Hint() string {
	return fmt.Sprintf("if the server is meant to be there, name the address in the entry's URL, or add %s to its remote.addresses", e.Addr)
}

// control is for [net.Dialer.Control]: it returns an [*AddressError] for an
// address that is neither public nor granted.
func (g guard) control(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return &net.AddrError{Err: "not an address", Addr: address}
	}
	return g.check(at.Addr())
}

func (g guard) check(addr netip.Addr) error {
	addr = addr.WithZone("").Unmap()
	if slices.ContainsFunc(g.granted, func(p netip.Prefix) bool { return p.Contains(addr) }) {
		return nil
	}
	if kind := special(addr); kind != "" {
		return &AddressError{Addr: addr, Kind: kind}
	}
	return nil
}

// A block is a range of addresses that are not for everybody.
type block struct{ prefix, kind string }

// blocks are the IANA special-purpose registries for IPv4 and IPv6, and the
// places where clouds keep what a machine may know of itself. The first that
// holds an address names it.
func blocks() []block {
	const metadata, private, link = "an address of a cloud's metadata", "a private address", "a link-local address"
	const documentation, reserved = "an address for documentation", "a reserved address"
	return []block{
		{"169.254.169.254/32", metadata},
		{"169.254.170.2/32", metadata},   // AWS, containers
		{"100.100.100.200/32", metadata}, // Alibaba
		{"168.63.129.16/32", metadata},   // Azure; a public address otherwise
		{"192.0.0.192/32", metadata},     // Oracle
		{"fd00:ec2::/32", metadata},      // AWS
		{"fd20:ce::254/128", metadata},   // Google
		{"0.0.0.0/8", "an address of this network"},
		{"10.0.0.0/8", private},
		{"172.16.0.0/12", private},
		{"192.168.0.0/16", private},
		{"100.64.0.0/10", "an address of a carrier's network"},
		{"127.0.0.0/8", "an address of this machine"},
		{"169.254.0.0/16", link},
		{"192.0.0.0/24", reserved},
		{"192.0.2.0/24", documentation},
		{"192.88.99.0/24", reserved},
		{"198.18.0.0/15", "an address for benchmarks"},
		{"198.51.100.0/24", documentation},
		{"203.0.113.0/24", documentation},
		{"224.0.0.0/4", "a multicast address"},
		{"240.0.0.0/4", reserved},
		{"::/128", "an address of this network"},
		{"::1/128", "an address of this machine"},
		{"64:ff9b:1::/48", private},
		{"100::/64", reserved},
		{"2001::/23", reserved}, // Teredo and others
		{"2001:db8::/32", documentation},
		{"3fff::/20", documentation},
		{"5f00::/16", reserved},
		{"fc00::/7", private},
		{"fe80::/10", link},
		{"fec0::/10", private},
		{"ff00::/8", "a multicast address"},
	}
}

// special says what is special about an address, or "". An IPv6 address that
// stands for an IPv4 address is what that one is.
func special(addr netip.Addr) string {
	for _, b := range blocks() {
		if netip.MustParsePrefix(b.prefix).Contains(addr) {
			return b.kind
		}
	}
	if !addr.Is6() {
		return ""
	}
	bytes := addr.As16()
	for _, embedded := range []struct {
		prefix string
		at     int
	}{
		{"::/96", 12},        // IPv4-compatible
		{"64:ff9b::/96", 12}, // NAT64
		{"2002::/16", 2},     // 6to4
	} {
		if !netip.MustParsePrefix(embedded.prefix).Contains(addr) {
			continue
		}
		if kind := special(netip.AddrFrom4([4]byte(bytes[embedded.at : embedded.at+4]))); kind != "" {
			return kind
		}
		if embedded.prefix == "::/96" {
			return "a reserved address"
		}
		return ""
	}
	if !netip.MustParsePrefix("2000::/3").Contains(addr) {
		return "a reserved address"
	}
	return ""
}
