package endpoint_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/endpoint"
	"github.com/dockgate/dockgate/internal/gateway/gatewaytest"
	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest"
)

// hanging has a tool that goes on until its call is cancelled or let go.
type hanging struct {
	began, cancelled, let chan struct{}
}

func newHanging() *hanging {
	return &hanging{began: make(chan struct{}, 8), cancelled: make(chan struct{}, 8), let: make(chan struct{})}
}

func (h *hanging) servers() map[string]sandboxtest.Server {
	return map[string]sandboxtest.Server{"test/one": gatewaytest.SDKServer(func(s *mcp.Server) {
		echo(s)
		s.AddTool(&mcp.Tool{Name: "hang", InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				h.began <- struct{}{}
				select {
				case <-h.let:
					return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil
				case <-ctx.Done():
					h.cancelled <- struct{}{}
					return nil, ctx.Err()
				}
			})
	})}
}

// patience is how long a test waits for what must come: less than a call may
// take, since its end cancels it, too.
const patience = 25 * time.Second

// within fails the test if something does not happen soon.
func within(t *testing.T, happens <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-happens:
	case <-time.After(patience):
		t.Fatalf("%s did not happen within %v", what, patience)
	}
}

// leaving sends a request of a client that goes when leave is called; left is
// closed when it has.
func (f *front) leaving(t *testing.T, body string, headers ...string) (leave func(), left <-chan struct{}) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, f.url, strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return
		}
		headers = append([]string{"Content-Type", "application/json", "Accept", "application/json, text/event-stream"}, headers...)
		for i := 0; i+1 < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		if response, err := f.client(t).Do(r); err == nil {
			_ = response.Body.Close()
			t.Errorf("POST of who has left = %s", response.Status)
		}
	}()
	return cancel, gone
}

// ask sends a request to the front and returns the response, which the test closes.
func (f *front) ask(t testing.TB, ctx context.Context, method, body string, headers ...string) *http.Response { //nolint:revive // t first, as in all of them
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, f.url, strings.NewReader(body))
	check(t, err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := f.client(t).Do(r)
	check(t, err)
	t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

func (f *front) client(t testing.TB) *http.Client {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// begin begins a legacy session and returns the headers of its requests.
func (f *front) begin(t testing.TB, headers ...string) []string {
	t.Helper()
	response := f.ask(t, t.Context(), http.MethodPost, initialize, headers...)
	id := response.Header.Get("Mcp-Session-Id")
	if response.StatusCode != http.StatusOK || id == "" {
		t.Fatalf("initialize = %s without a session", response.Status)
	}
	session := append([]string{"Mcp-Session-Id", id, "Mcp-Protocol-Version", "2025-11-25"}, headers...)
	done := f.ask(t, t.Context(), http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, session...)
	check(t, done.Body.Close())
	return session
}

// A client of the modern era who leaves cancels its call.
func TestDisconnectCancels(t *testing.T) {
	server := newHanging()
	f := open(t, options{}, server.servers())
	leave, left := f.leaving(t, strings.ReplaceAll(modernCall, "one__echo", "one__hang"), modernHeaders("tools/call", "Mcp-Name", "one__hang")...)
	within(t, server.began, "the call")
	leave()
	within(t, server.cancelled, "the cancellation at the server")
	within(t, left, "the client's end")
}

// DELETE ends a session, and the servers that were its own.
func TestDeleteEndsSession(t *testing.T) {
	f := open(t, options{}, echoing())
	session := f.join(t, "2025-11-25", newClient(nil), "")
	other := f.join(t, "2025-11-25", newClient(nil), "")
	for _, each := range []*mcp.ClientSession{session, other} {
		_, err := each.CallTool(t.Context(), &mcp.CallToolParams{Name: "alone__echo", Arguments: map[string]any{}})
		check(t, err)
	}
	if got := len(f.Fake.Running()); got != 2 {
		t.Fatalf("%d containers run for two sessions, want 2", got)
	}
	started := f.Fake.Started()
	id := session.ID()
	check(t, session.Close()) // sends DELETE
	response := f.ask(t, t.Context(), http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "Mcp-Session-Id", id)
	check(t, response.Body.Close())
	if response.StatusCode != http.StatusNotFound {
		t.Errorf("POST to a session that has ended = %s, want 404", response.Status)
	}
	for deadline := time.Now().Add(10 * time.Second); len(f.Fake.Running()) > 1; {
		if time.Now().After(deadline) {
			t.Fatalf("%v run after one of two sessions has ended", f.Fake.Running())
		}
		runtime.Gosched()
	}
	if _, err := other.CallTool(t.Context(), &mcp.CallToolParams{Name: "alone__echo", Arguments: map[string]any{}}); err != nil || f.Fake.Started() != started {
		t.Errorf("the other session's call = %v after %d starts more, want its own server", err, f.Fake.Started()-started)
	}
}

// DELETE does not wait for a call under way: it ends it.
func TestDeleteEndsCalls(t *testing.T) {
	server := newHanging()
	f := open(t, options{}, server.servers())
	session := f.begin(t)
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		response := f.ask(t, t.Context(), http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"one__hang"}}`, session...)
		_ = response.Body.Close() // what it holds is not the question
	}()
	within(t, server.began, "the call")
	response := f.ask(t, t.Context(), http.MethodDelete, "", session...)
	check(t, response.Body.Close())
	if response.StatusCode != http.StatusNoContent {
		t.Errorf("DELETE = %s, want 204", response.Status)
	}
	within(t, server.cancelled, "the cancellation at the server")
	within(t, answered, "the end of the call's answer")
}

// A session is its principal's alone, also for who knows its id.
func TestSessionOfAnother(t *testing.T) {
	f := open(t, options{locked: true}, echoing())
	ann, bob := []string{"Authorization", "Bearer " + f.token(t, "ann")}, []string{"Authorization", "Bearer " + f.token(t, "bob")}
	session := f.begin(t, ann...)
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	tests := []struct {
		name    string
		method  string
		headers []string
		want    int
	}{
		{"its own", http.MethodPost, session, 200},
		{"another's POST", http.MethodPost, append(session[:4:4], bob...), 403},
		{"another's GET", http.MethodGet, append(session[:4:4], bob...), 403},
		{"another's DELETE", http.MethodDelete, append(session[:4:4], bob...), 403},
		{"nobody's", http.MethodPost, session[:4], 401},
		{"a wrong token's", http.MethodPost, append(session[:4:4], "Authorization", "Bearer x"), 401},
		{"still its own", http.MethodPost, session, 200},
	}
	for _, tt := range tests {
		response := f.ask(t, t.Context(), tt.method, ping, tt.headers...)
		body, _ := io.ReadAll(response.Body)
		check(t, response.Body.Close())
		if response.StatusCode != tt.want {
			t.Errorf("%s = %s: %s, want %d", tt.name, response.Status, body, tt.want)
		}
		if challenge := response.Header.Get("WWW-Authenticate"); tt.want == 401 && !strings.HasPrefix(challenge, "Bearer ") {
			t.Errorf("%s: WWW-Authenticate = %q, want a challenge", tt.name, challenge)
		}
	}
}

// A caller who floods is told to wait; others go on.
func TestFlood(t *testing.T) {
	f := open(t, options{locked: true, limits: endpoint.Limits{Rate: 0.001, Burst: 20, Sessions: 3, Listens: 2}}, echoing())
	ann, bob := []string{"Authorization", "Bearer " + f.token(t, "ann")}, []string{"Authorization", "Bearer " + f.token(t, "bob")}
	list := modernHeaders("tools/list")
	limited := 0
	for range 40 {
		response := f.ask(t, t.Context(), http.MethodPost, modernList, append(list, ann...)...)
		check(t, response.Body.Close())
		switch response.StatusCode {
		case http.StatusOK:
		case http.StatusTooManyRequests:
			limited++
			if response.Header.Get("Retry-After") == "" {
				t.Error("429 without Retry-After")
			}
		default:
			t.Errorf("POST = %s", response.Status)
		}
	}
	if limited != 20 {
		t.Errorf("%d of 40 messages were refused, want 20", limited)
	}
	for range 3 {
		f.begin(t, bob...)
	}
	response := f.ask(t, t.Context(), http.MethodPost, initialize, bob...)
	check(t, response.Body.Close())
	if response.StatusCode != http.StatusTooManyRequests {
		t.Errorf("a session too many = %s, want 429", response.Status)
	}
	for i := range 3 {
		const listen = `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},` + modernMeta + `}}`
		response := f.ask(t, t.Context(), http.MethodPost, listen, append(modernHeaders("subscriptions/listen"), bob...)...)
		if want := map[bool]int{true: 200, false: 429}[i < 2]; response.StatusCode != want {
			t.Errorf("listen %d = %s, want %d", i, response.Status, want)
		}
	}
}

// Streams that wait for news stay alive behind proxies.
func TestKeepAlive(t *testing.T) {
	f := open(t, options{limits: endpoint.Limits{KeepAlive: time.Millisecond}}, echoing())
	const listen = `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},` + modernMeta + `}}`
	for name, response := range map[string]*http.Response{
		"GET":    f.ask(t, t.Context(), http.MethodGet, "", f.begin(t)...),
		"listen": f.ask(t, t.Context(), http.MethodPost, listen, modernHeaders("subscriptions/listen")...),
	} {
		if got := response.Header.Get("X-Accel-Buffering"); got != "no" {
			t.Errorf("%s: X-Accel-Buffering = %q, want no", name, got)
		}
		comments := 0
		lines := bufio.NewScanner(response.Body)
		for comments < 2 && lines.Scan() {
			if lines.Text() == ": keep-alive" {
				comments++
			}
		}
		if comments < 2 {
			t.Errorf("%s: %d keep-alive comments, then %v", name, comments, lines.Err())
		}
	}
}

// A person is asked in the client, on the stream of the call that waits.
func TestAsks(t *testing.T) {
	for _, version := range versions() {
		f := open(t, options{mode: approval.ModeAsk}, echoing())
		asked := make(chan string, 8)
		session := f.join(t, version, newClient(&mcp.ClientOptions{
			ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				asked <- req.Params.Message
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "approve"}}, nil
			},
		}), "")
		result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "one__echo", Arguments: map[string]any{"a": 1}})
		check(t, err)
		if got := text(result); got != `{"a":1}` || len(asked) != 1 {
			t.Errorf("%s: echo = %s after %d questions, want its answer after one", version, got, len(asked))
		}
	}
}

// A listener of each era is told that the list has changed.
func TestListChanged(t *testing.T) {
	for _, version := range versions() {
		f := open(t, options{}, echoing())
		changed := make(chan struct{}, 8)
		session := f.join(t, version, newClient(&mcp.ClientOptions{
			ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} },
		}), "")
		if _, err := session.ListTools(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		_, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "one__echo", Arguments: map[string]any{}})
		check(t, err)
		f.Changed(t.Context())
		within(t, changed, version+": the news")
	}
}

// At the end calls under way are waited for, streams end well, and new calls
// are refused.
func TestDrain(t *testing.T) {
	for _, version := range versions() {
		server := newHanging()
		f := open(t, options{limits: endpoint.Limits{Drain: time.Minute}}, server.servers())
		session := f.join(t, version, newClient(&mcp.ClientOptions{
			ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {},
		}), "")
		answered := make(chan error, 1)
		go func() {
			result, err := session.CallTool(context.WithoutCancel(t.Context()), &mcp.CallToolParams{Name: "one__hang"})
			if err == nil && text(result) != "done" {
				err = fmt.Errorf("result %q", text(result))
			}
			answered <- err
		}()
		within(t, server.began, "the call")
		stopped := make(chan error, 1)
		go func() { stopped <- f.stop() }()
		for { // until it is closed to new calls
			r := post(t, f, modernList, modernHeaders("tools/list")...)
			if r.Code == http.StatusServiceUnavailable {
				break
			}
		}
		select {
		case err := <-stopped:
			t.Fatalf("%s: Serve = %v with a call under way", version, err)
		default:
		}
		close(server.let)
		if err := <-answered; err != nil {
			t.Errorf("%s: the call under way = %v, want its result", version, err)
		}
		if err := <-stopped; err != nil {
			t.Errorf("%s: Serve = %v", version, err)
		}
	}
}

// A call that does not end is ended.
func TestDrainIsBounded(t *testing.T) {
	for _, version := range versions() {
		server := newHanging()
		f := open(t, options{limits: endpoint.Limits{Drain: time.Millisecond}}, server.servers())
		session := f.join(t, version, newClient(nil), "")
		answered := make(chan error, 1)
		go func() {
			_, err := session.CallTool(context.WithoutCancel(t.Context()), &mcp.CallToolParams{Name: "one__hang"})
			answered <- err
		}()
		within(t, server.began, "the call")
		if err := f.stop(); err != nil {
			t.Errorf("%s: Serve = %v", version, err)
		}
		within(t, server.cancelled, version+": the cancellation at the server")
		if err := <-answered; err == nil {
			t.Errorf("%s: the call = nil, want an error", version)
		}
	}
}

// What a server sends arrives as it sent it, and so does what a client sends.
func TestVerbatim(t *testing.T) {
	const result = `{"content":[{"type":"odd","n":12345678901234567890,"n":1e400}],"structuredContent":[1,"\u2028 <&>"],"x-vendor":{"b":1,"a":2},"isError":false}`
	got := make(chan string, 8)
	raw := func(_ context.Context, c sandboxtest.Container) int {
		reader, writer := jsonrpc.NewReader(c.Stdin, jsonrpc.ReaderOptions{}), jsonrpc.NewWriter(c.Stdout)
		for {
			m, err := reader.Read()
			if err != nil {
				return 0
			}
			answer := jsonrpc.Message{ID: m.ID}
			switch m.Method {
			case "initialize":
				answer.Result = json.RawMessage(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"1"}}`)
			case "tools/list":
				answer.Result = json.RawMessage(`{"tools":[{"name":"odd","inputSchema":{"type":"object"}},{"name":"bad","inputSchema":{"type":"object"}}]}`)
			case "tools/call":
				if string(jsonrpc.Lookup(m.Params, "name")) == `"bad"` {
					answer.Error = &jsonrpc.Error{Code: -31999, Message: "<bad>", Data: json.RawMessage(`{"n":12345678901234567890,"t":"<&>"}`)}
					break
				}
				got <- string(m.Params)
				answer.Result = json.RawMessage(result)
			default:
				answer.Error = &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "no"}
			}
			if m.ID == nil {
				continue
			}
			if err := writer.Write(answer); err != nil {
				return 1
			}
		}
	}
	f := open(t, options{}, map[string]sandboxtest.Server{"test/one": raw})
	session, old := post(t, f, initialize).Header().Get("Mcp-Session-Id"), sessionOf(t, f, initializeOld)
	const params = `{"name":"%s","_meta":{"vendor/x":12345678901234567890%s},"arguments":{"b":1.0,"a":"<&>","b":2},"odd":[1]}`
	const hop = `,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}`
	call := func(name, meta string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + fmt.Sprintf(params, "one__"+name, meta) + `}`
	}
	tests := []struct {
		name, answer string
		body         func(name string) string
		headers      func(name string) []string
	}{
		{"legacy", `{"jsonrpc":"2.0","id":1,%s}`, func(name string) string { return call(name, "") }, func(string) []string {
			return []string{"Mcp-Session-Id", session, "Mcp-Protocol-Version", "2025-11-25"}
		}},
		{"legacy batch", `{"jsonrpc":"2.0","id":1,%s}`, func(name string) string {
			return `[{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}},` + call(name, "") + `]`
		}, func(string) []string {
			return append(old, "Mcp-Protocol-Version", "2025-03-26")
		}},
		{"modern", `{"jsonrpc":"2.0","id":1,%s}`, func(name string) string { return call(name, hop) }, func(name string) []string {
			return modernHeaders("tools/call", "Mcp-Name", "one__"+name)
		}},
	}
	for _, tt := range tests {
		w := post(t, f, tt.body("odd"), tt.headers("odd")...)
		want := "data: " + fmt.Sprintf(tt.answer, `"result":`+result) + "\n\n"
		if tt.name == "modern" { // what only this era has stands at the end
			want = strings.TrimSuffix(want, "}}\n\n") + `,"resultType":"complete"`
		}
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: answer\n%s\nwant\n%s", tt.name, w.Body, want)
		}
		// The token with which the server is asked for progress belongs to its hop.
		params := regexp.MustCompile(`,"progressToken":\d+`).ReplaceAllString(<-got, "")
		if want := `{"name":"odd","_meta":{"vendor/x":12345678901234567890},"arguments":{"b":1.0,"a":"<&>","b":2},"odd":[1]}`; params != want {
			t.Errorf("%s: the server got\n%s\nwant\n%s", tt.name, params, want)
		}
		w = post(t, f, tt.body("bad"), tt.headers("bad")...)
		if want := `"data":{"n":12345678901234567890,"t":"<&>"}`; !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: error\n%s\nwant in it\n%s", tt.name, w.Body, want)
		}
	}
}
