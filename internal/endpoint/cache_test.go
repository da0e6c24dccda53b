package endpoint_test

import (
	"strings"
	"testing"
	"time"
)

// What a modern client may keep is its own, and for as long as the settings
// say; a legacy client is told nothing of it. The order is always the same.
func TestCaching(t *testing.T) {
	f := open(t, options{fresh: 90 * time.Second}, echoing())
	session := post(t, f, initialize).Header().Get("Mcp-Session-Id")
	for _, method := range []string{"tools/list", "prompts/list", "resources/list", "resources/templates/list", "server/discover"} {
		body := `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{` + modernMeta + `}}`
		first := post(t, f, body, modernHeaders(method)...).Body.String()
		for _, want := range []string{`"ttlMs":90000`, `"cacheScope":"private"`, `"resultType":"complete"`} {
			if !strings.Contains(first, want) {
				t.Errorf("%s = %s, want %s in it", method, first, want)
			}
		}
		if again := post(t, f, body, modernHeaders(method)...).Body.String(); again != first {
			t.Errorf("%s again = %s, want the same as before: %s", method, again, first)
		}
		if method == "server/discover" {
			continue
		}
		legacy := post(t, f, `{"jsonrpc":"2.0","id":1,"method":"`+method+`"}`, "Mcp-Session-Id", session, "Mcp-Protocol-Version", "2025-11-25").Body.String()
		if !strings.Contains(legacy, `"result":`) || strings.Contains(legacy, "ttlMs") || strings.Contains(legacy, "cacheScope") {
			t.Errorf("%s of a session = %s, want a result without what later versions have", method, legacy)
		}
	}
}
