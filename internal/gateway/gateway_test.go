package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/approval/consent"
	"github.com/dockgate/dockgate/internal/gateway"
	"github.com/dockgate/dockgate/internal/gateway/menu"
	"github.com/dockgate/dockgate/internal/meta"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest"
)

func TestFirstCallAsksAndRuns(t *testing.T) {
	for _, version := range versions() {
		t.Run(version, func(t *testing.T) {
			h := build(t, options{wait: time.Minute, active: []string{"one"}}, map[string]sandboxtest.Server{"test/one": sdkServer(echo)})
			var asked []string
			session := h.join(t, answering("approve", &asked), version)
			before := names(t, session)
			if slices.Contains(before, "one__echo") || h.fake.Started() != 0 {
				t.Errorf("before the approval: tools %v, %d started; want no tool of one, none started", before, h.fake.Started())
			}
			result := invoke(t, session, "one__echo", map[string]any{"a": 1})
			if got := text(result); result.IsError || got != `{"a":1}` {
				t.Errorf("one__echo = %q, error %t; want the arguments", got, result.IsError)
			}
			if len(asked) != 1 || !strings.Contains(asked[0], "test/one") {
				t.Errorf("asked %q, want one question about test/one", asked)
			}
			h.Changed(t.Context())
			if after := names(t, session); !slices.Contains(after, "one__echo") {
				t.Errorf("after the call the tools are %v, want one__echo among them", after)
			}
			// A server that turns out to speak both generations of the protocol is
			// started anew, once, in that of the client.
			starts := map[string]int{"2025-11-25": 2, "2026-07-28": 1}[version]
			invoke(t, session, "one__echo", map[string]any{})
			if len(asked) != 1 || h.fake.Started() != starts {
				t.Errorf("after two calls: %d questions, %d starts; want 1 and %d", len(asked), h.fake.Started(), starts)
			}
		})
	}
}

func TestDenied(t *testing.T) {
	for _, version := range versions() {
		t.Run(version, func(t *testing.T) {
			h := build(t, options{wait: time.Minute, active: []string{"one"}}, map[string]sandboxtest.Server{"test/one": sdkServer(echo)})
			var asked []string
			session := h.join(t, answering("deny", &asked), version)
			result := invoke(t, session, "one__echo", nil)
			if !result.IsError || !strings.HasPrefix(text(result), consent.CodeDenied) || h.fake.Started() != 0 {
				t.Errorf("one__echo = %q, error %t, %d started; want %s and none", text(result), result.IsError, h.fake.Started(), consent.CodeDenied)
			}
		})
	}
}

// A form that is accepted without its decision approves nothing.
func TestAcceptIsNotApproval(t *testing.T) {
	h := build(t, options{wait: time.Minute, active: []string{"one"}}, map[string]sandboxtest.Server{"test/one": sdkServer(echo)})
	for _, version := range versions() {
		client := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, &mcp.ClientOptions{
			ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				return &mcp.ElicitResult{Action: "cancel"}, nil
			},
		})
		session := h.join(t, client, version)
		result := invoke(t, session, "one__echo", nil)
		if !result.IsError || !strings.HasPrefix(text(result), consent.CodePending) || h.fake.Started() != 0 {
			t.Errorf("%s: one__echo = %q; want %s", version, text(result), consent.CodePending)
		}
	}
}

func TestPendingWithoutForms(t *testing.T) {
	for _, version := range versions() {
		t.Run(version, func(t *testing.T) {
			h := build(t, options{wait: 10 * time.Millisecond, active: []string{"one"}}, map[string]sandboxtest.Server{"test/one": sdkServer(echo)})
			session := h.join(t, mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, nil), version)
			result := invoke(t, session, "one__echo", nil)
			if !result.IsError || !strings.HasPrefix(text(result), consent.CodePending) {
				t.Fatalf("one__echo = %q, error %t; want %s", text(result), result.IsError, consent.CodePending)
			}
			questions := h.book.Questions(approval.ProgressPending)
			if len(questions) != 1 {
				t.Fatalf("%d pending questions, want 1", len(questions))
			}
			check(t, h.book.Decide(t.Context(), questions[0], approval.Decision{Answer: approval.Approve, Channel: "terminal", By: principal.Local}))
			if result := invoke(t, session, "one__echo", map[string]any{}); result.IsError || text(result) != "{}" {
				t.Errorf("one__echo after the approval = %q, want {}", text(result))
			}
		})
	}
}

func TestNames(t *testing.T) {
	h := build(t, options{mode: approval.ModeAll, active: []string{"one"}}, map[string]sandboxtest.Server{"test/one": sdkServer(echo)})
	session := h.join(t, mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, nil))
	for _, name := range []string{"one__echo", "one.echo"} {
		if result := invoke(t, session, name, map[string]any{}); result.IsError {
			t.Errorf("%s = %s, want a result", name, text(result))
		}
	}
	h.Changed(t.Context())
	_, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "one_echo"})
	if err == nil || !strings.Contains(err.Error(), "one__echo") {
		t.Errorf("one_echo = %v, want an error that names one__echo", err)
	}
	if result := invoke(t, session, "one__ekko", nil); !result.IsError || !strings.Contains(text(result), "nearest: echo") {
		t.Errorf("one__ekko = %s, want the nearest", text(result))
	}
}

func TestPrefixNone(t *testing.T) {
	h := build(t, options{mode: approval.ModeAll, active: []string{"one", "two"}, prefix: menu.PrefixNone},
		map[string]sandboxtest.Server{"test/one": sdkServer(echo), "test/two": sdkServer(echo)})
	session := h.join(t, mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, nil))
	names(t, session)
	invoke(t, session, "mcp_add", map[string]any{"name": "one"})
	if added := text(invoke(t, session, "mcp_add", map[string]any{"name": "two"})); !strings.Contains(added, "two__echo") {
		t.Errorf("mcp_add of two says %q, want its echo by the name it is listed under", added)
	}
	got := names(t, session)
	if !slices.Contains(got, "echo") || !slices.Contains(got, "two__echo") {
		t.Errorf("tools %v, want echo of one, and two__echo", got)
	}
}

// What nobody approved is listed from the catalog, never from the server.
func TestSnapshot(t *testing.T) {
	h := build(t, options{wait: time.Millisecond, active: []string{"two"}}, map[string]sandboxtest.Server{"test/two": sdkServer(echo)})
	session := h.join(t, mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, nil))
	if got := names(t, session); !slices.Contains(got, "two__promised") {
		t.Errorf("tools %v, want two__promised", got)
	}
}

func TestExpose(t *testing.T) {
	for _, tt := range []struct {
		expose []meta.Group
		want   string
	}{
		{[]meta.Group{meta.Meta}, "list_mcp_servers search_tools list_tools get_tool_details execute_tool"},
		{[]meta.Group{meta.Dynamic}, "mcp_find mcp_add mcp_remove mcp_active"},
		{[]meta.Group{gateway.Active}, ""},
		{[]meta.Group{meta.Meta, gateway.Direct}, "list_mcp_servers search_tools list_tools get_tool_details execute_tool one__echo"},
	} {
		h := build(t, options{mode: approval.ModeAll, expose: tt.expose}, map[string]sandboxtest.Server{"test/one": sdkServer(echo)})
		session := h.join(t, mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, nil))
		if slices.Contains(tt.expose, gateway.Direct) {
			invoke(t, session, "execute_tool", map[string]any{"server": "one", "tool": "echo"})
			h.Changed(t.Context())
		}
		if got := strings.Join(names(t, session), " "); got != tt.want {
			t.Errorf("expose %v: tools %q, want %q", tt.expose, got, tt.want)
		}
	}
}

func TestListChanged(t *testing.T) {
	h := build(t, options{mode: approval.ModeAll}, map[string]sandboxtest.Server{"test/one": sdkServer(echo)})
	for _, version := range versions() {
		t.Run(version, func(t *testing.T) {
			told := make(chan struct{}, 10)
			session := h.join(t, mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, &mcp.ClientOptions{
				ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { told <- struct{}{} },
			}), version)
			names(t, session)
			invoke(t, session, "mcp_add", map[string]any{"name": "one"})
			<-told
			if got := names(t, session); !slices.Contains(got, "one__echo") {
				t.Errorf("tools %v after mcp_add, want one__echo", got)
			}
			if got := text(invoke(t, session, "mcp_remove", map[string]any{"name": "one"})); got != "one removed." {
				t.Errorf("mcp_remove = %q", got)
			}
			<-told
			if got := names(t, session); slices.Contains(got, "one__echo") {
				t.Errorf("tools %v after mcp_remove, want no one__echo", got)
			}
			if running := h.fake.Running(); len(running) != 0 {
				t.Errorf("running %v after mcp_remove, want none", running)
			}
		})
	}
}

func TestOwnToolsMistakes(t *testing.T) {
	h := build(t, options{mode: approval.ModeAll}, nil)
	session := h.join(t, mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, nil))
	for _, tt := range []struct {
		tool      string
		arguments any
		want      string
	}{
		{"mcp_find", map[string]any{}, "query is empty"},
		{"mcp_find", map[string]any{"query": 1}, "mcp_find"},
		{"mcp_add", map[string]any{"name": "onne"}, "nearest: one"},
		{"mcp_add", map[string]any{"name": "one", "config": map[string]any{"x": 1}}, "x"},
		{"mcp_remove", map[string]any{"name": "one"}, "not active"},
		{"execute_tool", map[string]any{"tool": "x"}, "server is missing"},
		{"execute_tool", map[string]any{"server": "one"}, "tool is missing"},
		{"execute_tool", map[string]any{"server": "one", "tool": "x", "arguments": []int{1}}, "arguments is not an object"},
	} {
		result := invoke(t, session, tt.tool, tt.arguments)
		if !result.IsError || !strings.Contains(text(result), tt.want) {
			t.Errorf("%s(%v) = %q, error %t; want an error with %q", tt.tool, tt.arguments, text(result), result.IsError, tt.want)
		}
	}
}

func TestProgress(t *testing.T) {
	slow := sdkServer(func(s *mcp.Server) {
		s.AddTool(&mcp.Tool{Name: "slow", InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				for i := range 3 {
					err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
						ProgressToken: req.Params.GetProgressToken(), Progress: float64(i + 1), Total: 3, Message: "step",
					})
					if err != nil {
						return nil, err
					}
				}
				return &mcp.CallToolResult{Content: []mcp.Content{}}, nil
			})
	})
	h := build(t, options{mode: approval.ModeAll, active: []string{"one"}}, map[string]sandboxtest.Server{"test/one": slow})
	for _, version := range versions() {
		t.Run(version, func(t *testing.T) {
			steps := make(chan float64, 10)
			session := h.join(t, mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, &mcp.ClientOptions{
				ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
					if req.Params.Message == "step" {
						steps <- req.Params.Progress
					}
				},
			}), version)
			for name, arguments := range map[string]map[string]any{
				"one__slow":    {},
				"execute_tool": {"server": "one", "tool": "slow", "arguments": map[string]any{}},
			} {
				params := &mcp.CallToolParams{Name: name, Arguments: arguments, Meta: mcp.Meta{"progressToken": "of " + name}}
				_, err := session.CallTool(t.Context(), params)
				check(t, err)
				for want := 1.0; want <= 3; want++ {
					if got := <-steps; got != want {
						t.Errorf("progress %v of %s, want %v", got, name, want)
					}
				}
			}
		})
	}
}

func TestPromptsAndResources(t *testing.T) {
	server := sdkServer(func(s *mcp.Server) {
		s.AddPrompt(&mcp.Prompt{Name: "greet"}, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Description: "for " + req.Params.Name + req.Params.Arguments["who"]}, nil
		})
		read := func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Params.URI, Text: "content"}}}, nil
		}
		s.AddResource(&mcp.Resource{Name: "a", URI: "test://a"}, read)
		s.AddResourceTemplate(&mcp.ResourceTemplate{Name: "t", URITemplate: "test://t/{id}"}, read)
	})
	h := build(t, options{mode: approval.ModeAll, active: []string{"one"}}, map[string]sandboxtest.Server{"test/one": server})
	for _, version := range versions() {
		t.Run(version, func(t *testing.T) {
			session := h.join(t, mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, nil), version)
			invoke(t, session, "mcp_add", map[string]any{"name": "one"})
			h.Changed(t.Context())
			prompts, err := session.ListPrompts(t.Context(), nil)
			check(t, err)
			if len(prompts.Prompts) != 1 || prompts.Prompts[0].Name != "one__greet" {
				t.Fatalf("prompts %+v, want one__greet", prompts.Prompts)
			}
			prompt, err := session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "one__greet", Arguments: map[string]string{"who": "!"}})
			check(t, err)
			if prompt.Description != "for greet!" {
				t.Errorf("prompt %q, want the server's own name and the argument", prompt.Description)
			}
			for _, uri := range []string{"test://a", "test://t/7"} {
				read, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
				check(t, err)
				if len(read.Contents) != 1 || read.Contents[0].URI != uri {
					t.Errorf("read %s = %+v", uri, read.Contents)
				}
			}
			templates, err := session.ListResourceTemplates(t.Context(), nil)
			check(t, err)
			if len(templates.ResourceTemplates) != 1 {
				t.Errorf("templates %+v, want one", templates.ResourceTemplates)
			}
			if _, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "test://b"}); err == nil {
				t.Error("read test://b = no error, want one")
			}
			if _, err := session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "one__gret"}); err == nil || !strings.Contains(err.Error(), "one__greet") {
				t.Errorf("get one__gret = %v, want the nearest", err)
			}
		})
	}
}

// A server with isolation "session" runs once for each client, and ends with it.
func TestSessionScope(t *testing.T) {
	h := build(t, options{mode: approval.ModeAll, active: []string{"alone"}}, map[string]sandboxtest.Server{"test/one": sdkServer(echo)})
	a := h.join(t, mcp.NewClient(&mcp.Implementation{Name: "a", Version: "1"}, nil))
	b := h.join(t, mcp.NewClient(&mcp.Implementation{Name: "b", Version: "1"}, nil))
	invoke(t, a, "alone__echo", nil)
	invoke(t, b, "alone__echo", nil)
	if got := len(h.fake.Running()); got != 2 {
		t.Errorf("%d containers run for two clients, want 2", got)
	}
}

// What a server sends arrives as it sent it.
func TestVerbatim(t *testing.T) {
	const result = `{"content":[{"type":"odd","n":12345678901234567890,"n":1e400}],"structuredContent":[1,"\u2028 <&>"],"x-vendor":{"b":1,"a":2},"isError":false}`
	const definition = `{"x":{"z":1,"a":2},"name":"odd","inputSchema":{"type":"object","const":9007199254740993},"execution":{"taskSupport":"optional"}}`
	var got json.RawMessage
	raw := func(_ context.Context, c sandboxtest.Container) int {
		decoder := json.NewDecoder(c.Stdin)
		for {
			var m struct {
				ID     json.RawMessage `json:"id"`
				Method string          `json:"method"`
				Params json.RawMessage `json:"params"`
			}
			if err := decoder.Decode(&m); err != nil {
				return 0
			}
			answer := map[string]string{
				"initialize": `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"1"}}`,
				"tools/list": `{"tools":[` + definition + `]}`,
				"tools/call": result,
			}[m.Method]
			switch {
			case m.ID == nil:
			case answer == "":
				fmt.Fprintf(c.Stdout, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`+"\n", m.ID)
			default:
				if m.Method == "tools/call" {
					got = m.Params
				}
				fmt.Fprintf(c.Stdout, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, answer)
			}
		}
	}
	h := build(t, options{mode: approval.ModeAll, active: []string{"one"}, expose: []meta.Group{gateway.Active}}, map[string]sandboxtest.Server{"test/one": raw})
	toServer, fromClient := io.Pipe()
	toClient, fromServer := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- h.Serve(t.Context(), toServer, fromServer, principal.Local) }()
	defer func() {
		check(t, fromClient.Close())
		check(t, <-served)
	}()
	lines := json.NewDecoder(toClient)
	ask := func(id int, method, params string) string {
		fmt.Fprintf(fromClient, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", id, method, params)
		for {
			var m struct {
				ID     int             `json:"id"`
				Result json.RawMessage `json:"result"`
				Error  json.RawMessage `json:"error"`
			}
			check(t, lines.Decode(&m))
			if m.ID == id {
				return string(m.Result) + string(m.Error)
			}
		}
	}
	ask(1, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`)
	fmt.Fprintln(fromClient, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	if answer := ask(2, "tools/call", `{"name":"one__odd","_meta":{"vendor/x":12345678901234567890},"arguments":{"b":1.0,"a":"<&>","b":2},"odd":[1 ]}`); answer != result {
		t.Errorf("result\n%s\nwant\n%s", answer, result)
	}
	// The token with which the server is asked for progress belongs to its hop.
	got = regexp.MustCompile(`,"progressToken":\d+`).ReplaceAll(got, nil)
	if want := `{"name":"odd","_meta":{"vendor/x":12345678901234567890},"arguments":{"b":1.0,"a":"<&>","b":2},"odd":[1]}`; string(got) != want && string(got) != strings.Replace(want, "[1]", "[1 ]", 1) {
		t.Errorf("the server got\n%s\nwant\n%s", got, want)
	}
	h.Changed(t.Context())
	want := `{"tools":[` + strings.Replace(definition, `"name":"odd"`, `"name":"one__odd"`, 1) + `]}`
	if answer := ask(3, "tools/list", `{}`); answer != want {
		t.Errorf("list\n%s\nwant\n%s", answer, want)
	}
}

// A modern client is told what is missing, and a handle works once, for its call only.
func TestHandles(t *testing.T) {
	h := build(t, options{wait: time.Minute, active: []string{"one"}}, map[string]sandboxtest.Server{"test/one": sdkServer(echo)})
	client := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, &mcp.ClientOptions{
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return nil, errors.New("asked although the rounds are ours")
		},
	})
	session := h.join(t, client, "2026-07-28")
	first := func() *mcp.CallToolResult { return invoke(t, session, "one__echo", map[string]any{"a": 1}) }
	retry := func(state, name string, arguments any) (*mcp.CallToolResult, error) {
		return session.CallTool(t.Context(), &mcp.CallToolParams{
			Name: name, Arguments: arguments, RequestState: state,
			InputResponses: mcp.InputResponseMap{"approval": &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "approve"}}},
		})
	}
	asked := first()
	if !asked.NeedsInput() || asked.RequestState == "" {
		t.Fatalf("one__echo = %+v, want a question and a handle", asked)
	}
	if _, err := retry(asked.RequestState, "one__echo", map[string]any{"a": 2}); err == nil {
		t.Error("a retry with other arguments is accepted")
	}
	if _, err := retry(asked.RequestState, "one__echo", map[string]any{"a": 1}); err == nil {
		t.Error("a handle works after it was misused")
	}
	if h.fake.Started() != 0 {
		t.Errorf("%d servers started without an approval", h.fake.Started())
	}
	asked = first()
	result, err := retry(asked.RequestState, "one__echo", map[string]any{"a": 1})
	check(t, err)
	if got := text(result); got != `{"a":1}` {
		t.Errorf("retry = %q, want the result", got)
	}
	if _, err := retry(asked.RequestState, "one__echo", map[string]any{"a": 1}); err == nil {
		t.Error("a handle works twice")
	}
}
