package upstream_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/tool"
	"github.com/dockgate/dockgate/internal/upstream"
)

func TestOffer(t *testing.T) {
	s, p := connect(t, options(upstream.Legacy))
	played := start(func() {
		p.play(`
			> {"id":2,"method":"tools/list"}
			< {"id":2,"result":{"nextCursor":"a\u0062\"","tools":[ {"name":"one", "x":9007199254740993} ,{"title":"nameless"}]}}
			> {"id":3,"method":"tools/list","params":{"cursor":"a\u0062\""}}
			< {"id":3,"result":{"tools":[{"name":"two","a":1,"a":2}],"nextCursor":""}}
			> {"id":4,"method":"prompts/list"}
			< {"id":4,"result":{"prompts":[{"name":"p"}],"nextCursor":null}}
			> {"id":5,"method":"resources/list"}
			< {"id":5,"result":{"resources":[{"uri":"a:b"}]}}
			> {"id":6,"method":"resources/templates/list"}
			< {"id":6,"error":{"code":-32601,"message":"Method not found"}}
		`)
	})
	got, err := s.Offer(t.Context())
	if err != nil {
		t.Fatalf("Offer() = %v", err)
	}
	played()
	if len(got.Refused) != 1 {
		t.Errorf("Refused = %v, want one tool", got.Refused)
	}
	got.Refused = nil
	want := upstream.Offer{
		Tools: []tool.Definition{
			{Name: "one", JSON: json.RawMessage(`{"name":"one", "x":9007199254740993}`)},
			{Name: "two", JSON: json.RawMessage(`{"name":"two","a":1,"a":2}`)},
		},
		Prompts:   []json.RawMessage{json.RawMessage(`{"name":"p"}`)},
		Resources: []json.RawMessage{json.RawMessage(`{"uri":"a:b"}`)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Offer() (-want +got):\n%s", diff)
	}
}

func TestOfferAsksOnlyForWhatIsAnnounced(t *testing.T) {
	s, p := connect(t, options(upstream.Modern))
	played := start(func() {
		p.play(`
			> {"id":2,"method":"tools/list","params":{"_meta":{META}}}
			< {"id":2,"result":{"tools":[{"name":"t"}],"ttlMs":0,"cacheScope":"public","resultType":"complete"}}
		`)
	})
	got, err := s.Offer(t.Context())
	if err != nil || len(got.Tools) != 1 {
		t.Errorf("Offer() = %v, %v, want one tool", got, err)
	}
	played()
}

func TestOfferIsBounded(t *testing.T) {
	const limit = 1000
	tests := []struct {
		name    string
		page    func(n int) string
		tools   int
		cut     bool
		endless bool
	}{
		{"cursor repeats", func(int) string { return `{"tools":[{"name":"t"}],"nextCursor":"same"}` }, 0, false, true},
		{"cursors in a circle", func(n int) string { return fmt.Sprintf(`{"tools":[],"nextCursor":"%d"}`, n%7) }, 0, false, true},
		{"empty pages for ever", func(n int) string { return fmt.Sprintf(`{"tools":[],"nextCursor":"%d"}`, n) }, 0, false, true},
		{"huge pages", func(n int) string {
			return fmt.Sprintf(`{"tools":[{"name":"t","x":"%s"}],"nextCursor":"%d"}`, strings.Repeat("x", 10<<20), n)
		}, 0, false, true},
		{"large tools", func(n int) string {
			return fmt.Sprintf(`{"tools":[{"name":"t","x":"%s"}],"nextCursor":"%d"}`, strings.Repeat("x", 200<<10), n)
		}, 40, true, false},
		{"tools for ever", func(n int) string {
			return fmt.Sprintf(`{"tools":[%s{"name":"t"}],"nextCursor":"%d"}`, strings.Repeat(`{"name":"t"},`, 98), n)
		}, limit, true, false},
		{"as many as allowed", func(int) string {
			return `{"tools":[` + strings.Repeat(`{"name":"t"},`, limit-1) + `{"name":"t"}]}`
		}, limit, false, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			o := options(upstream.Modern)
			o.MaxEntries = limit
			s, p := connect(t, o)
			pages := 0
			served := serveCalls(p, func(m jsonrpc.Message) {
				p.send(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":` + test.page(pages) + `}`)
				pages++
			})
			got, err := s.Offer(t.Context())
			if errors.Is(err, upstream.ErrEndless) != test.endless || (err != nil) != test.endless {
				t.Errorf("Offer() = %v, want endless %t", err, test.endless)
			}
			if len(got.Tools) != test.tools || (len(got.Cut) > 0) != test.cut {
				t.Errorf("Offer() has %d tools, cut %v, want %d, %t", len(got.Tools), got.Cut, test.tools, test.cut)
			}
			_ = s.Close()
			served()
			if pages > 1000 {
				t.Errorf("asked for %d pages, want at most 1000", pages)
			}
		})
	}
}

// One tool that is out of bounds does not cost the others.
func TestOfferRefuses(t *testing.T) {
	s, p := connect(t, options(upstream.Modern))
	served := serveCalls(p, func(m jsonrpc.Message) {
		p.send(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"tools":[{"name":"one"},` +
			`{"name":"huge","description":"` + strings.Repeat("x", 1<<20) + `"},` +
			`{"name":"` + strings.Repeat("long", 300) + `"},{"name":"two"}]}}`)
	})
	got, err := s.Offer(t.Context())
	if err != nil {
		t.Fatalf("Offer() = %v", err)
	}
	want := []tool.Definition{{Name: "one", JSON: json.RawMessage(`{"name":"one"}`)}, {Name: "two", JSON: json.RawMessage(`{"name":"two"}`)}}
	if diff := cmp.Diff(want, got.Tools); diff != "" {
		t.Errorf("Offer() (-want +got):\n%s", diff)
	}
	reasons := fmt.Sprint(got.Refused)
	if want := "[tools: entry of 1048608 bytes, longer than 262144 tool name of 1200 bytes, longer than 1024]"; reasons != want {
		t.Errorf("Refused = %s, want %s", reasons, want)
	}
	_ = s.Close()
	served()
}

// A server that fails to list what it announces beside its tools can be used.
func TestOfferWithoutLists(t *testing.T) {
	s, p := connect(t, options(upstream.Legacy))
	played := start(func() {
		p.play(`
			> {"id":2,"method":"tools/list"}
			< {"id":2,"result":{"tools":[{"name":"one"}]}}
			> {"id":3,"method":"prompts/list"}
			< {"id":3,"error":{"code":-32603,"message":"no database"}}
			> {"id":4,"method":"resources/list"}
			< {"id":4,"result":{"resources":[{"uri":"a:b"}]}}
			> {"id":5,"method":"resources/templates/list"}
			< {"id":5,"error":{"code":0,"message":"Unknown"}}
		`)
	})
	got, err := s.Offer(t.Context())
	if err != nil || len(got.Tools) != 1 || len(got.Resources) != 1 {
		t.Errorf("Offer() = %+v, %v, want a tool and a resource", got, err)
	}
	if len(got.Missing) != 2 || !strings.Contains(got.Missing[0].Error(), "prompts/list: no database") {
		t.Errorf("Missing = %v, want two lists", got.Missing)
	}
	played()
}

func TestOfferFailsWhole(t *testing.T) {
	for _, answer := range []string{
		`"error":{"code":-32601,"message":"no tools after all"}`,
		`"error":{"code":-32603,"message":"x"}`,
		`"result":{}`,
		`"result":[]`,
		`"result":{"tools":{}}`,
		`"result":{"tools":null}`,
	} {
		s, p := connect(t, options(upstream.Modern))
		played := start(func() {
			p.play("> {\"id\":2,\"method\":\"tools/list\",\"params\":{\"_meta\":{META}}}\n< {\"id\":2," + answer + "}")
		})
		if got, err := s.Offer(t.Context()); err == nil {
			t.Errorf("Offer() = %v for %s, want an error", got, answer)
		}
		played()
	}
}
