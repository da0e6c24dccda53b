package remote_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dockgate/dockgate/internal/remote/door"
	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/upstream"
)

// A server may begin its stream with an event that has an id alone, and end it
// right after a message: no message is lost, and it is told where it was. What
// is asked of it waits until it can speak.
func TestPolledStream(t *testing.T) {
	listening := make(chan struct{})
	resumed := make(chan string, 1)
	gets := make(chan struct{}, 1)
	gets <- struct{}{}
	p := newPlace(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Type", "text/event-stream")
			select {
			case <-gets: // the first
				close(listening)
				_, _ = fmt.Fprint(w, "retry: 20\nid: one\ndata: \n\nid: two\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n")
				return
			default:
			}
			select {
			case resumed <- r.Header.Get("Last-Event-Id"):
			default:
			}
			if err := http.NewResponseController(w).Flush(); err != nil {
				return
			}
			<-r.Context().Done()
			return
		}
		body, err := io.ReadAll(r.Body)
		switch {
		case err != nil:
		case strings.Contains(string(body), `"initialize"`):
			w.Header().Set("Mcp-Session-Id", "s")
			answer(w, http.StatusOK, "application/json", `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}`)
		case strings.Contains(string(body), `"ping"`):
			said := `{"jsonrpc":"2.0","id":2,"result":{}}`
			select {
			case <-listening:
			default:
				said = `{"jsonrpc":"2.0","id":2,"error":{"code":-32000,"message":"nobody listens"}}`
			}
			answer(w, http.StatusOK, "application/json", said)
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	}))
	changed := make(chan string, 10)
	s := converse(t, dial(t, sandbox.Remote{URL: p.URL}, door.Options{}), upstream.Options{
		Era: upstream.Legacy, Notify: func(method string, _ json.RawMessage) { changed <- method },
	})
	if _, err := s.Call(t.Context(), "ping", nil, nil); err != nil {
		t.Errorf("the first request = %v, want it after the stream is open", err)
	}
	for what, ch := range map[string]chan string{"notifications/tools/list_changed": changed, "two": resumed} {
		select {
		case got := <-ch:
			if got != what {
				t.Errorf("got %q, want %q", got, what)
			}
		case <-time.After(20 * time.Second):
			t.Errorf("no %s", what)
		}
	}
}
