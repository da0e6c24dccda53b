package meta_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dockgate/dockgate/internal/call"
	"github.com/dockgate/dockgate/internal/gateway/gatewaytest"
	"github.com/dockgate/dockgate/internal/meta"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest"
)

// BenchmarkMeta asks for a list, a search and details at 1,000 servers with
// 10,000 tools.
func BenchmarkMeta(b *testing.B) {
	var catalog strings.Builder
	catalog.WriteString("version: 1\nservers:\n")
	var names []string
	verbs := strings.Fields("create read update delete list search copy move lock watch")
	for i := range 1000 {
		name := fmt.Sprintf("server-%d", i)
		names = append(names, name)
		fmt.Fprintf(&catalog, "  %s:\n    image: test/one\n    description: Keeps things of kind %d\n    tools:\n", name, i)
		for _, verb := range verbs {
			fmt.Fprintf(&catalog, "      - {name: %s_thing_%d, description: 'Can %s things of kind %d', inputSchema: {type: object, properties: {id: {type: string}}, required: [id]}}\n", verb, i, verb, i)
		}
	}
	h := gatewaytest.Build(b, gatewaytest.Options{Catalog: catalog.String(), Active: names}, map[string]sandboxtest.Server{"test/one": github().serve})
	own, err := meta.Tools()
	check(b, err)
	client := call.Client{Principal: principal.Local, Session: "s"}
	for _, tt := range []struct{ tool, arguments string }{
		{"list_mcp_servers", `{}`},
		{"search_tools", `{"query":"delete things of kind 77"}`},
		{"list_tools", `{"server":"server-77"}`},
		{"get_tool_details", `{"server":"server-77","tool":"delete_thing_77"}`},
	} {
		b.Run(tt.tool, func(b *testing.B) {
			for _, t := range own {
				if t.Name != tt.tool {
					continue
				}
				for b.Loop() {
					if _, err := h.Desk.Call(b.Context(), t, client, []byte(tt.arguments)); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
	b.Run("refresh", func(b *testing.B) {
		for b.Loop() {
			h.Desk.Refresh(b.Context())
		}
	})
}
