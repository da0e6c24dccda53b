package remote_test

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/remote/door"
	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/upstream"
)

// kinds are the ways in which a server is reached, with the era it then speaks.
func kinds() map[string]struct {
	transport string
	era       upstream.Era
	handler   func() http.Handler
} {
	type kind = struct {
		transport string
		era       upstream.Era
		handler   func() http.Handler
	}
	return map[string]kind{
		"legacy": {catalog.StreamableHTTP, upstream.Legacy, func() http.Handler { return streamable(newServer(), upstream.Legacy) }},
		"modern": {catalog.StreamableHTTP, upstream.Modern, func() http.Handler { return streamable(newServer(), upstream.Modern) }},
		"sse":    {catalog.SSE, "", func() http.Handler { return oldSSE(newServer()) }},
	}
}

func TestConversation(t *testing.T) {
	for name, kind := range kinds() {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, kind.handler())
			s := converse(t, dial(t, sandbox.Remote{URL: p.URL, Transport: kind.transport}, door.Options{}), upstream.Options{})
			if kind.era != "" && s.Era() != kind.era {
				t.Fatalf("Era() = %s, want %s", s.Era(), kind.era)
			}
			offer, err := s.Offer(t.Context())
			if err != nil || len(offer.Tools) != 5 {
				t.Fatalf("Offer() = %d tools, %v, want 5", len(offer.Tools), err)
			}
			const params = `{"name":"echo","arguments":{"z":1,"a":12345678901234567890,"text":"é<>"}}`
			if got, want := call(t, s, params, nil), `{"z":1,"a":12345678901234567890,"text":"é<>"}`; got != want {
				t.Errorf("echo = %s, want %s", got, want)
			}
			var steps []float64
			call(t, s, `{"name":"count"}`, func(params json.RawMessage) {
				var progress struct{ Progress float64 }
				if err := json.Unmarshal(params, &progress); err != nil {
					t.Error(err)
				}
				steps = append(steps, progress.Progress)
			})
			if diff := cmp.Diff([]float64{1, 2, 3}, steps); diff != "" {
				t.Errorf("progress differs (-want +got):\n%s", diff)
			}
			if got := call(t, s, `{"name":"mirrored","arguments":{"where":{"city":"Zürich"}}}`, nil); kind.era == upstream.Modern && got != "=?base64?WsO8cmljaA==?=" {
				t.Errorf("Mcp-Param-City = %q, want Zürich in Base64", got)
			}
			if err := s.Ping(t.Context()); err != nil {
				t.Errorf("Ping() = %v", err)
			}
		})
	}
}

// A legacy server asks its client, and says that its lists have changed, on
// streams that the gateway opened.
func TestServerSpeaksByItself(t *testing.T) {
	for _, name := range []string{"legacy", "sse"} {
		t.Run(name, func(t *testing.T) {
			kind := kinds()[name]
			p := newPlace(t, kind.handler())
			changed := make(chan string, 10)
			s := converse(t, dial(t, sandbox.Remote{URL: p.URL, Transport: kind.transport}, door.Options{}), upstream.Options{
				Era:          upstream.Legacy,
				Capabilities: json.RawMessage(`{"roots":{}}`),
				Notify:       func(method string, _ json.RawMessage) { changed <- method },
				Serve: func(_ context.Context, method string, _ json.RawMessage) (json.RawMessage, error) {
					return json.RawMessage(`{"roots":[{"uri":"file:///` + method + `"}]}`), nil
				},
			})
			if got, want := call(t, s, `{"name":"ask"}`, nil), "file:///roots/list"; got != want {
				t.Errorf("ask = %s, want %s", got, want)
			}
			if name == "legacy" { // wait for the stream, else the change may come before it
				waitFor(t, p, func(h http.Header) bool { return h.Get("Accept") == "text/event-stream" })
			}
			call(t, s, `{"name":"grow"}`, nil)
			select {
			case method := <-changed:
				if method != "notifications/tools/list_changed" {
					t.Errorf("notification %s, want notifications/tools/list_changed", method)
				}
			case <-time.After(20 * time.Second):
				t.Error("no notification of the new tool")
			}
		})
	}
}

// waitFor returns when a request came that is wanted.
func waitFor(t *testing.T, p *place, wanted func(http.Header) bool) http.Header {
	t.Helper()
	for {
		select {
		case h := <-p.seen:
			if wanted(h) {
				return h
			}
		case <-time.After(20 * time.Second):
			t.Fatal("the request did not come")
		}
	}
}
