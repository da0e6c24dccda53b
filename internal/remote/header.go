package remote

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"

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

// A FieldError is a header or URL that cannot be used with the values of its
// secrets. It does not quote them.
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
			return "", false, fmt.Errorf("has a ${ without an end")
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
func headers(templates map[string]string, secrets map[string]secret.Value) (http.Header, error) {
	filled := make(http.Header)
	for name, template := range templates {
		field := "remote.headers." + name
		name = http.CanonicalHeaderKey(name)
		if isProtocols(name) {
			return nil, &FieldError{field, "is a header of the protocol, and cannot be set"}
		}
		value, ok, err := expand(template, secrets, func(s string) string { return s })
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

// plainName writes a name as a header can hold it: as it is if it is visible
// ASCII, else in Base64 between marks (MCP 2026-07-28,
// basic/transports/streamable-http, "Value encoding").
func plainName(name string) string {
	odd := strings.TrimSpace(name) != name || strings.HasPrefix(name, "=?base64?") ||
		strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r > '~' })
	if !odd {
		return name
	}
	return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(name)) + "?="
}
