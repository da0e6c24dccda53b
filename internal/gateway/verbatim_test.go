package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/call"
	"github.com/dockgate/dockgate/internal/gateway"
	"github.com/dockgate/dockgate/internal/gateway/menu"
	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/meta"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest"
)

// odd is what a server may say and few libraries keep: members nobody knows,
// repeated ones, numbers that no float holds, an order of its own, and
// characters that encoders like to escape or to drop.
const odd = `"z":12345678901234567890,"a":1e400,"z":-0.0,"text":"<&>` + "\u200b\ufeff\u2028\u2029\\u2028\\ud83d\\ude00é" + `","nested":{"b":[],"a":{},"b":null}`

// An oddity is a tool, a prompt and a resource with the same result.
type oddity struct{ name, result string }

func oddities() []oddity {
	text := func(more string) string { return `{"content":[{"type":"text","text":"hello"}]` + more + `}` }
	return []oddity{
		{"plain", text(``)},
		{"unknown", text(`,` + odd)},
		{"meta", text(`,"_meta":{"vendor.example/x":{` + odd + `},"other":1}`)},
		{"kinds", `{"content":[{"type":"hologram",` + odd + `},{"type":"text","text":"x","annotations":{"priority":1.0,"audience":["user"],"x":1}}],"isError":false}`},
		{"links", `{"content":[{"type":"resource_link","uri":"test://a","name":"a","icons":[{"src":"data:,x","sizes":["any"],"theme":"dark","x":1}]}]}`},
		{"object", text(`,"structuredContent":{` + odd + `}`)},
		{"array", text(`,"structuredContent":[1,"two",{"z":1,"a":2}]`)},
		{"number", text(`,"structuredContent":12345678901234567890`)},
		{"string", text(`,"structuredContent":"\u0000"`)},
		{"false", text(`,"structuredContent":false`)},
		{"null", text(`,"structuredContent":null`)},
		{"failed", `{"isError":true,"content":[],"x":1}`},
		{"spaced", "{ \"content\" : [ ] ,\t\"x\" : { } }"},
		{"error", `!{"code":-31999,"message":"no <&>","data":{` + odd + `}}`},
	}
}

// definition is how an oddity is listed.
func (o oddity) definition() string {
	return `{"x":{"z":1,"a":2},"name":"` + o.name + `","title":"T","inputSchema":{"type":"object","const":9007199254740993,"x-y":1},` +
		`"execution":{"taskSupport":"optional"},"icons":[{"src":"data:,x"}],"annotations":{"readOnlyHint":true,"vendor":1},"_meta":{"v/x":1.0}}`
}

// oddHello answers the first request of an era.
func oddHello(version, method string) string {
	switch {
	case method == "initialize" && version == legacyVersion():
		return `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"prompts":{},"resources":{}},"serverInfo":{"name":"odd","version":"1"}}`
	case method == "server/discover" && version == modernVersion():
		return `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"prompts":{},"resources":{}},"ttlMs":0,"cacheScope":"private"}`
	}
	return `!{"code":-32601,"message":"no"}`
}

// oddServer answers in one era, byte by byte.
func oddServer(version string) sandboxtest.Server {
	results, tools := map[string]string{}, []string{}
	for _, o := range oddities() {
		results[o.name] = o.result
		tools = append(tools, o.definition())
	}
	answer := func(m rawMessage) string {
		switch m.Method {
		case "initialize", "server/discover":
			return oddHello(version, m.Method)
		case "tools/list":
			return `{"tools":[` + strings.Join(tools, ",") + `,{"name":"got","inputSchema":{"type":"object"}}]}`
		case "prompts/list":
			return `{"prompts":[` + strings.Join(tools, ",") + `]}`
		case "resources/list":
			return `{"resources":[{"uri":"test://unknown","name":"unknown",` + odd + `}]}`
		case "resources/templates/list":
			return `{"resourceTemplates":[{"uriTemplate":"test://{name}","name":"any",` + odd + `}]}`
		case "tools/call", "prompts/get", "resources/read":
			var head struct{ Name, URI string }
			if json.Unmarshal(m.Params, &head) != nil {
				return `!{"code":-32602,"message":"params"}`
			}
			if head.Name == "got" {
				return `{"content":[],"got":` + string(m.Params) + `}`
			}
			result := results[head.Name+strings.TrimPrefix(head.URI, "test://")]
			if version == versions()[1] && result[0] == '{' {
				result = `{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"odd","version":"1"}},` + result[1:]
				if strings.Contains(result[20:], `"_meta"`) { // it has one of its own
					result = `{"resultType":"complete",` + results[head.Name+strings.TrimPrefix(head.URI, "test://")][1:]
				}
			}
			return result
		}
		return `!{"code":-32601,"message":"no"}`
	}
	return speaking(answer)
}

// speaking is a server that answers each request with a result or, after an
// exclamation mark, an error, byte by byte.
func speaking(answer func(rawMessage) string) sandboxtest.Server {
	return func(_ context.Context, c sandboxtest.Container) int {
		decoder := json.NewDecoder(c.Stdin)
		for {
			var m rawMessage
			if err := decoder.Decode(&m); err != nil {
				return 0
			}
			if m.ID == nil {
				continue
			}
			member, text := "result", answer(m)
			if text[0] == '!' {
				member, text = "error", text[1:]
			}
			if _, err := fmt.Fprintf(c.Stdout, `{"jsonrpc":"2.0","id":%s,%q:%s}`+"\n", m.ID, member, text); err != nil {
				return 1
			}
		}
	}
}

// settled is an answer without what belongs to one era or one hop, and
// without insignificant whitespace; all else is as it was.
func settled(t *testing.T, method, answer string) string {
	t.Helper()
	var compact bytes.Buffer
	check(t, json.Compact(&compact, []byte(answer)))
	dropped := map[string]bool{"resultType": true, "ttlMs": method != "tools/call", "cacheScope": method != "tools/call"}
	var kept []string
	for m, err := range jsonrpc.Members(compact.Bytes()) {
		check(t, err)
		raw := string(m.Raw)
		switch name := string(m.Name); {
		case dropped[name]:
			continue
		case name == "_meta":
			if raw = hopless(t, m.Value); raw == "" {
				continue
			}
		case name == "got":
			raw = `"got":` + settled(t, "", string(m.Value))
		}
		kept = append(kept, raw)
	}
	return "{" + strings.Join(kept, ",") + "}"
}

func hopless(t *testing.T, object json.RawMessage) string {
	t.Helper()
	var kept []string
	for m, err := range jsonrpc.Members(object) {
		check(t, err)
		if !strings.HasPrefix(string(m.Name), "io.modelcontextprotocol/") && string(m.Name) != "progressToken" {
			kept = append(kept, string(m.Raw))
		}
	}
	if len(kept) == 0 {
		return ""
	}
	return `"_meta":{` + strings.Join(kept, ",") + `}`
}

// The same requests get the same answers from a server and through a gateway,
// as far as the eras of both know the same things.
func TestSameAsBare(t *testing.T) {
	params := func(more, version string) string {
		const received = `"x":[1 ],"_meta":{"v/x":12345678901234567890,"traceparent":"00-1"`
		if version == versions()[1] {
			return "{" + more + received + `,` + strings.TrimSuffix(strings.TrimPrefix(modernMeta, `"_meta":{`), "}") + `}}`
		}
		return "{" + more + received + `}}`
	}
	type request struct{ method, params string }
	var script []request
	for _, o := range oddities() {
		script = append(script, request{"tools/call", `"name":"` + o.name + `","arguments":{` + odd + `},`},
			request{"prompts/get", `"name":"` + o.name + `",`}, request{"resources/read", `"uri":"test://` + o.name + `",`})
	}
	script = append(script, request{"tools/call", `"odd":1,"name":"got","arguments":{` + odd + `},"odd":{},`},
		request{"tools/list", ``}, request{"prompts/list", ``}, request{"resources/list", ``}, request{"resources/templates/list", ``})
	play := func(t *testing.T, c *rawClient, version string, ready func(), each func(r request, answer string)) {
		if version == versions()[0] {
			c.send(`{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
			c.answer(`"hello"`)
			c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		}
		ask := func(id int, r request) string {
			c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, r.method, params(r.params, version)))
			return c.answer(fmt.Sprint(id))
		}
		ask(0, script[0])
		ready()
		for i, r := range script {
			each(r, ask(i+1, r))
		}
	}
	eachCombination(t, func(t *testing.T, client, server string) {
		bare := map[request]string{}
		c, done := bareServer(t, oddServer(server))
		play(t, c, server, func() {}, func(r request, answer string) { bare[r] = settled(t, r.method, answer) })
		done()
		h := build(t, options{mode: approval.ModeAll, active: []string{"one"}, prefix: menu.PrefixNone, expose: []meta.Group{gateway.Active}},
			map[string]sandboxtest.Server{"test/one": oddServer(server)})
		play(t, h.raw(t), client, func() {
			client := call.Client{Principal: principal.Local, Session: "test", Via: "test"}
			check(t, h.Caller.Ready(t.Context(), call.Request{Client: client, Server: "one", Method: "mcp_add"}))
			h.Changed(t.Context())
		}, func(r request, answer string) {
			got, want := settled(t, r.method, answer), bare[r]
			if client == versions()[0] && server == versions()[1] && r.method == "tools/call" {
				want = onlyObjects(t, want)
			}
			if got != want {
				t.Errorf("%s %s\n%.2000s\nwant, as from the server alone,\n%.2000s", r.method, r.params, got, want)
			}
		})
	})
}

// A result of 10 MB is the same at both ends.
func TestLargeResult(t *testing.T) {
	large := `{"content":[],"x":"` + strings.Repeat(`<&>é\n`, 10<<20/7) + `"`
	eachCombination(t, func(t *testing.T, client, server string) {
		s := speaking(func(m rawMessage) string {
			switch m.Method {
			case "initialize", "server/discover":
				return oddHello(server, m.Method)
			case "tools/list":
				return `{"tools":[{"name":"large","inputSchema":{"type":"object"}}]}`
			case "tools/call":
				return large + `}`
			}
			return `!{"code":-32601,"message":"no"}`
		})
		h := build(t, options{mode: approval.ModeAll, active: []string{"one"}}, map[string]sandboxtest.Server{"test/one": s})
		c := h.raw(t)
		params := `{"name":"one__large","arguments":{}}`
		if client == modernVersion() {
			params = `{"name":"one__large","arguments":{},` + modernMeta + `}`
		} else {
			c.send(hello)
			c.answer(`"hello"`)
		}
		c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + params + `}`)
		line, err := c.lines.ReadString('\n')
		check(t, err)
		if !strings.Contains(line, `"result":`+large) || len(line) > len(large)+500 {
			t.Errorf("the result has %d bytes and begins %.200s, want the server's %d", len(line), line, len(large))
		}
	})
}

// onlyObjects is a result as a client with sessions may get it.
func onlyObjects(t *testing.T, result string) string {
	t.Helper()
	var kept []string
	for m, err := range jsonrpc.Members([]byte(result)) {
		check(t, err)
		if string(m.Name) != "structuredContent" || m.Value[0] == '{' {
			kept = append(kept, string(m.Raw))
		}
	}
	return "{" + strings.Join(kept, ",") + "}"
}

// bareServer runs a server without a gateway.
func bareServer(t *testing.T, server sandboxtest.Server) (c *rawClient, done func()) {
	t.Helper()
	stdin, in := io.Pipe()
	out, stdout := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- server(t.Context(), sandboxtest.Container{Stdin: stdin, Stdout: stdout, Stderr: io.Discard})
	}()
	return &rawClient{t: t, in: in, lines: bufio.NewReader(out)}, func() {
		check(t, in.Close())
		<-ended
	}
}
