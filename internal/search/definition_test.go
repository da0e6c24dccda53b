package search_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/search"
	"github.com/dockgate/dockgate/internal/tool"
)

func TestToolOf(t *testing.T) {
	tests := []struct {
		definition string
		want       search.Tool
	}{
		{`{"name":"a"}`, search.Tool{Name: "a"}},
		{`{"name":"a","title":"A","description":"d","annotations":{"title":"B"}}`, search.Tool{Name: "a", Title: "A", Description: "d"}},
		{`{"name":"a","annotations":{"title":"B"}}`, search.Tool{Name: "a", Title: "B"}},
		{
			`{"name":"a","inputSchema":{"type":"object","properties":{"to":{"type":"string","description":"who"},"body":{"type":"object","properties":{"text":{"description":"what"}}}}}}`,
			search.Tool{Name: "a", Parameters: []search.Parameter{{Name: "body"}, {Name: "text", Description: "what"}, {Name: "to", Description: "who"}}},
		},
		{
			`{"name":"a","inputSchema":{"properties":{"list":{"type":"array","items":{"properties":{"id":{}}}}}}}`,
			search.Tool{Name: "a", Parameters: []search.Parameter{{Name: "list"}, {Name: "id"}}},
		},
		// What is not as it should be.
		{`{"name":"a","title":7,"description":["d"],"annotations":"x","inputSchema":true}`, search.Tool{Name: "a"}},
		{`{"name":"a","inputSchema":{"properties":[1,2]}}`, search.Tool{Name: "a"}},
	}
	for _, tt := range tests {
		definition, err := tool.ParseDefinition(json.RawMessage(tt.definition))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, search.ToolOf(definition)); diff != "" {
			t.Errorf("ToolOf(%s) differs (-want +got):\n%s", tt.definition, diff)
		}
	}
	if got := search.ToolOf(tool.Definition{Name: "a", JSON: json.RawMessage(`{`)}); got.Name != "a" {
		t.Errorf("ToolOf(no JSON) = %+v, want its name", got)
	}
}

func FuzzParametersOf(f *testing.F) {
	f.Add(`{"properties":{"a":{"items":{"properties":{"b":{}}}}}}`)
	f.Add(strings.Repeat(`{"items":`, 50) + "1" + strings.Repeat("}", 50))
	f.Fuzz(func(t *testing.T, schema string) {
		if got := search.ParametersOf(json.RawMessage(schema)); len(got) > 256 {
			t.Errorf("ParametersOf(%q) = %d parameters, want at most 256", schema, len(got))
		}
	})
}
