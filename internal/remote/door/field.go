package door

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/secret"
)

// The headers of the protocol, which an entry cannot set (MCP,
// basic/transports/streamable-http).
const (
	headerSession = "Mcp-Session-Id"
	headerVersion = "Mcp-Protocol-Version"
	headerName    = "Mcp-Name"
	headerLastID  = "Last-Event-Id"
)

// isProtocols reports whether a header is not the entry's to set.
func isProtocols(name string) bool {
	switch name {
	case "Accept", "Content-Length", "Content-Type", "Host", "Connection", "Transfer-Encoding",
		"Te", "Trailer", "Upgrade", "Keep-Alive", headerLastID:
		return true
	}
	return strings.HasPrefix(name, "Mcp-") || strings.HasPrefix(name, "Proxy-")
}

// A FieldError is a field of an entry that cannot be used, with the values of
// its secrets. It does not quote them.
type FieldError struct{ Field, Problem string }

// Error names the field.
func (e *FieldError) Error() string { return e.Field + " " + e.Problem }

// expand puts secrets in the place of each ${ENV}. A secret that is not set
// leaves nothing; ok is false if that leaves nothing at all of a text that
// has secrets.
func expand(template string, secrets map[string]secret.Value, escape func(string) string) (text string, ok bool, err error) {
	var b strings.Builder
	rest, missing, present := template, false, false
	for {
		before, after, found := strings.Cut(rest, "${")
		b.WriteString(before)
		if !found {
			return b.String(), present || !missing, nil
		}
		name, tail, closed := strings.Cut(after, "}")
		if !closed {
			return "", false, errors.New("has a ${ without an end")
		}
		value := secrets[name]
		if value.Set() {
			present = true
		} else {
			missing = true
		}
		b.WriteString(escape(value.Reveal()))
		rest = tail
	}
}

// headers fills the headers of an entry in. One whose secrets are all missing
// is left out.
func headers(templates []sandbox.Header, secrets map[string]secret.Value) (http.Header, error) {
	filled := make(http.Header)
	for _, header := range templates {
		field := "remote.headers." + header.Name
		name := http.CanonicalHeaderKey(header.Name)
		if isProtocols(name) {
			return nil, &FieldError{field, "is a header of the protocol, and cannot be set"}
		}
		value, ok, err := expand(header.Template, secrets, func(s string) string { return s })
		if err != nil {
			return nil, &FieldError{field, err.Error()}
		}
		if strings.ContainsAny(value, "\r\n\x00") {
			return nil, &FieldError{field, "would hold a line break"}
		}
		if ok {
			filled.Set(name, strings.TrimSpace(value))
		}
	}
	return filled, nil
}

// query fills the secrets of a URL's query in.
func query(u *url.URL, secrets map[string]secret.Value) (string, error) {
	filled, _, err := expand(u.RawQuery, secrets, url.QueryEscape)
	if err != nil {
		return "", &FieldError{"remote.url", err.Error()}
	}
	return filled, nil
}

// prefixes reads the addresses of an entry.
func prefixes(addresses []string) ([]netip.Prefix, error) {
	var granted []netip.Prefix
	for i, text := range addresses {
		p, err := prefix(text)
		if err != nil {
			return nil, &FieldError{fmt.Sprintf("remote.addresses[%d]", i), "is neither an address nor a prefix"}
		}
		granted = append(granted, p)
	}
	return granted, nil
}

// prefix reads an address as the prefix that holds only it.
func prefix(text string) (netip.Prefix, error) {
	if strings.Contains(text, "/") {
		p, err := netip.ParsePrefix(text)
		return p.Masked(), err
	}
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Prefix{}, err
	}
	addr = addr.WithZone("").Unmap()
	return netip.PrefixFrom(addr, addr.BitLen()), nil
}
