package era_test

import (
	"encoding/json"
	"testing"

	"github.com/dockgate/dockgate/internal/era"
)

// What was read is for who has read it, whatever the server says: another
// caller may not be allowed to.
func TestReadIsPrivate(t *testing.T) {
	const server = `{"name":"s","version":"1"}`
	const meta = `"_meta":{"io.modelcontextprotocol/serverInfo":` + server + `}`
	tests := []struct{ method, result, want string }{
		{"resources/read", `{"contents":[]}`, `{"contents":[],"resultType":"complete","ttlMs":0,"cacheScope":"private",` + meta + `}`},
		{
			"resources/read", `{"contents":[],"resultType":"complete","ttlMs":5,"cacheScope":"public",` + meta + `}`,
			`{"contents":[],"resultType":"complete","ttlMs":5,"cacheScope":"private",` + meta + `}`,
		},
		{"tools/call", `{"content":[],"cacheScope":"public"}`, `{"content":[],"cacheScope":"public","resultType":"complete",` + meta + `}`},
	}
	for _, tt := range tests {
		got, asks, err := era.ForModern(tt.method, json.RawMessage(tt.result), json.RawMessage(server))
		if string(got) != tt.want || asks || err != nil {
			t.Errorf("ForModern(%s, %s) = %s, %v, %v, want %s", tt.method, tt.result, got, asks, err, tt.want)
		}
	}
}
