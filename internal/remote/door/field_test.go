package door_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/remote/door"
	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/secret"
)

const canary = "CANARY-5e0c"

func FuzzHeaders(f *testing.F) {
	f.Add("Authorization", "Bearer ${KEY}")
	f.Add("x", "${KEY")
	f.Add("mcp-name", "${}${KEY}$")
	f.Fuzz(func(t *testing.T, name, template string) {
		server := sandbox.Remote{
			URL: "http://127.0.0.1:1/?" + url.QueryEscape(name) + "=${KEY}", Transport: catalog.StreamableHTTP,
			Headers: []sandbox.Header{{Name: name, Template: template}},
		}
		_, err := door.New(server, map[string]secret.Value{"KEY": secret.NewValue(canary + "\n")}, door.Options{})
		if err != nil && strings.Contains(err.Error(), canary) {
			t.Errorf("New(%q: %q) = %v, which tells the secret", name, template, err)
		}
	})
}

func TestFieldErrors(t *testing.T) {
	const at = "https://example.com"
	header := func(name, template string) []sandbox.Header {
		return []sandbox.Header{{Name: name, Template: template}}
	}
	tests := []struct {
		server sandbox.Remote
		want   string
	}{
		{sandbox.Remote{URL: "ftp://example.com"}, "remote.url is not an http or https URL"},
		{sandbox.Remote{URL: at + "/?a=${B"}, "remote.url has a ${ without an end"},
		{sandbox.Remote{URL: at, Headers: header("mcp-session-id", "1")}, "remote.headers.mcp-session-id is a header of the protocol, and cannot be set"},
		{sandbox.Remote{URL: at, Headers: header("A", "${KEY}")}, "remote.headers.A would hold a line break"},
		{sandbox.Remote{URL: at, Transport: "carrier-pigeon"}, `remote.transport is "carrier-pigeon", want streamable-http or sse`},
		{sandbox.Remote{URL: at, Addresses: []string{"10.0.0.0/8", "example.com"}}, "remote.addresses[1] is neither an address nor a prefix"},
	}
	for _, tt := range tests {
		_, err := door.New(tt.server, map[string]secret.Value{"KEY": secret.NewValue("a\nb")}, door.Options{})
		var field *door.FieldError
		if !errors.As(err, &field) || err.Error() != tt.want {
			t.Errorf("New(%+v) = %v, want %s", tt.server, err, tt.want)
		}
	}
}
