package remote_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dockgate/dockgate/internal/remote"
	"github.com/dockgate/dockgate/internal/upstream"
)

func TestEvents(t *testing.T) {
	const limit = 64
	long := strings.Repeat("a", limit)
	tests := []struct {
		stream string
		want   []string
		whole  bool // is read to its end
	}{
		{"", nil, true},
		{"data: {}\n\n", []string{"|0s|{}"}, true},
		{"data:{}\r\n\r\n", []string{"|0s|{}"}, true},
		{"id: 1\nretry: 500\ndata: \n\nid: 2\ndata: {}\n\n", []string{"1|500ms|", "2|0s|{}"}, true},
		{"event: message\ndata: [1,\ndata: 2]\n\n", []string{"|0s|[1,\n2]"}, true},
		{": a comment\n\n\n\ndata: 1\n\n", []string{"|0s|1"}, true},
		{"data\n\n", []string{"|0s|"}, true},
		{"id: 1\n\ndata: 2\n\n", []string{"1|0s|", "|0s|2"}, true},
		{"id: a\x00b\nretry: soon\ndata: 1\n\n", []string{"|0s|1"}, true},
		{"retry: 999999999\n\n", []string{"|1m0s|"}, true},
		{"data: 1\n\ndata: cut off", []string{"|0s|1"}, true},
		{"data: 1\n\ndata: cut off\n", []string{"|0s|1"}, true},
		{"data: 1\n\ndata: " + long + "\n\ndata: 3\n\n", []string{"|0s|1"}, false},
		{"data: 1\n\n" + strings.Repeat("data: 22\n", limit) + "\n", []string{"|0s|1"}, false},
		{strings.Repeat(": alive\n\n", limit) + "data: 1\n\n", []string{"|0s|1"}, true},
	}
	for _, tt := range tests {
		got, err := remote.Events(strings.NewReader(tt.stream), limit)
		if diff := cmp.Diff(tt.want, got, cmpopts.EquateEmpty()); diff != "" || errors.Is(err, io.EOF) != tt.whole {
			t.Errorf("Events(%q) ends with %v, whole %v (-want +got):\n%s", tt.stream, err, tt.whole, diff)
		}
	}
}

// FuzzEvents holds that what is read of a stream is within its bounds, whatever
// comes, and that one event never takes anything from the next.
func FuzzEvents(f *testing.F) {
	for _, seed := range []string{"", "data: {}\n\n", "id: 1\r\nretry: 5\r\ndata: \r\n\r\n", ": x\n\ndata: a\ndata: b\n\n", "data: a\x00\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, stream string) {
		const limit = 1 << 10
		got, err := remote.Events(strings.NewReader(stream), limit)
		if err == nil {
			t.Errorf("Events(%q) has no end", stream)
		}
		for _, event := range got {
			if len(event) > 2*limit {
				t.Errorf("Events(%q) = an event of %d bytes, want at most %d", stream, len(event), 2*limit)
			}
		}
		if !errors.Is(err, io.EOF) {
			return // too long
		}
		again, _ := remote.Events(strings.NewReader(stream+"\n\ndata: last\n\n"), limit)
		if len(again) == 0 || !strings.HasSuffix(again[len(again)-1], "last") {
			t.Errorf("Events(%q and one more) = %q, want the one more at the end", stream, again)
		}
	})
}

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
	s := converse(t, dial(t, remote.Address{URL: p.URL}, remote.Options{}), upstream.Options{
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
