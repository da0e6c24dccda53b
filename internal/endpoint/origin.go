package endpoint

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// fromHere reports whether a request may come from where it comes from. A web
// page can make a browser send requests to this machine, and by a name of its
// own that leads here even read the answers (DNS rebinding), so both the name
// that was asked for and the page that asked must be known (MCP:
// basic/transports, "Security Warning").
func (e *Endpoint) fromHere(r *http.Request) *refusal {
	if !e.knownHost(r) {
		return forbidden("Host " + quote(r.Host) + " is not one of this gateway")
	}
	for _, origin := range r.Header.Values("Origin") {
		if !e.knownOrigin(r, origin) {
			return forbidden("Origin " + quote(origin) + " is not allowed")
		}
	}
	return nil
}

func (e *Endpoint) knownHost(r *http.Request) bool {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if local != nil && local.Network() == "unix" {
		return true // no browser leads there
	}
	name := hostname(r.Host)
	if slices.ContainsFunc(e.Hosts, func(host string) bool { return strings.EqualFold(host, name) || strings.EqualFold(host, r.Host) }) {
		return true
	}
	if strings.EqualFold(name, "localhost") {
		return true
	}
	asked, err := netip.ParseAddr(name)
	if err != nil {
		return false
	}
	if asked.IsLoopback() {
		return true
	}
	// A number cannot be made to lead elsewhere than it says.
	tcp, ok := local.(*net.TCPAddr)
	return ok && tcp.AddrPort().Addr().Unmap() == asked.Unmap()
}

// knownOrigin reports whether a page may ask: one of the gateway's own host
// and port, of which it has none, or one that was named.
func (e *Endpoint) knownOrigin(r *http.Request, origin string) bool {
	if slices.Contains(e.Origins, origin) {
		return true
	}
	page, err := url.Parse(origin)
	return err == nil && page.Host != "" && strings.EqualFold(page.Host, r.Host)
}

// hostname is the part of a Host header before the port.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}

// quote shortens what a stranger wrote.
func quote(text string) string {
	const most = 100
	if len(text) > most {
		text = text[:most] + "…"
	}
	return `"` + text + `"`
}
