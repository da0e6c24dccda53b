package sandbox_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/sandbox"
)

const away = `
remote:
  url: "https://example.com/mcp?key=${KEY}"
  headers: {Authorization: "Bearer ${TOKEN}", X-Literal: CANARY}
  addresses: [10.0.0.0/8]
secrets:
  - {name: a.key, env: KEY}
  - {name: a.token, env: TOKEN, from: MY_TOKEN}
`

func TestRemoteGrant(t *testing.T) {
	entry := parse(t, away)
	spec, err := sandbox.CompileRemote(entry, nil, "ann")
	if err != nil {
		t.Fatal(err)
	}
	grant := sandbox.NewGrant(entry, spec, []string{"no swap limit"})
	want := []string{
		"source:    local, transport streamable-http",
		"url:       https://example.com/mcp?key=${KEY}",
		"header:    Authorization (with TOKEN)",
		"header:    X-Literal",
		"address:   10.0.0.0/8 (not public)",
		"secret:    KEY",
		"secret:    TOKEN from MY_TOKEN",
		"warning:   somebody else runs this server, and sees the arguments of its calls",
	}
	if diff := cmp.Diff(want, grant.Lines()); diff != "" {
		t.Errorf("Lines() differ (-want +got):\n%s", diff)
	}
	for _, v := range []any{spec, grant} {
		encoded, err := json.Marshal(v)
		if err != nil || strings.Contains(string(encoded), "CANARY") {
			t.Errorf("JSON = %s, %v, want no value of a header", encoded, err)
		}
	}
}

// What is approved, and what offers are kept under, changes with what it is made of.
func TestRemoteDigests(t *testing.T) {
	digests := func(text, principal string) (grant, spec, program string) {
		entry := parse(t, text)
		s, err := sandbox.CompileRemote(entry, nil, principal)
		if err != nil {
			t.Fatal(err)
		}
		return sandbox.NewGrant(entry, s, nil).Digest(), s.Digest(), s.Program()
	}
	grant, spec, program := digests(away, "ann")
	tests := []struct {
		name, old, replacement string
		principal              string
		grant, spec, program   bool // changes
	}{
		{"nothing", "", "", "ann", false, false, false},
		{"another principal", "", "", "bob", false, true, false},
		{"another URL", "example.com", "example.org", "ann", true, true, true},
		{"another header", "X-Literal", "X-Other", "ann", true, true, false},
		{"another secret", "Bearer ${TOKEN}", "Bearer ${KEY}", "ann", true, true, false},
		{"more addresses", "[10.0.0.0/8]", "[10.0.0.0/8, 127.0.0.1]", "ann", true, true, false},
	}
	for _, tt := range tests {
		g, s, p := digests(strings.Replace(away, tt.old, tt.replacement, 1), tt.principal)
		if got, want := [3]bool{g != grant, s != spec, p != program}, [3]bool{tt.grant, tt.spec, tt.program}; got != want {
			t.Errorf("%s: grant, spec, program change: %v, want %v", tt.name, got, want)
		}
	}
}

func TestPortGrant(t *testing.T) {
	entry := parse(t, "image: mcp/thing:1\nhttp: {port: 8080}")
	spec, err := sandbox.Compile(entry, nil, image(), host())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&sandbox.HTTP{Port: 8080, Path: "/mcp", Transport: "streamable-http"}, spec.HTTP); diff != "" {
		t.Errorf("HTTP differs (-want +got):\n%s", diff)
	}
	if got, want := sandbox.NewGrant(entry, spec, nil).Lines()[0], "source:    local, transport streamable-http on port 8080 (not published)"; got != want {
		t.Errorf("Lines()[0] = %s, want %s", got, want)
	}
	if afterEOF, afterTerm := spec.Ladder(); afterEOF != 0 || afterTerm != sandbox.DefaultStop {
		t.Errorf("Ladder() = %v, %v, want SIGTERM at once", afterEOF, afterTerm)
	}
}
