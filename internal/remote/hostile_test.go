package remote_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/remote"
	"github.com/dockgate/dockgate/internal/remote/door"
	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/secret"
	"github.com/dockgate/dockgate/internal/upstream"
)

const canary = "CANARY-5e0c"

// instead answers calls of one tool in its own way, and lets all else pass.
func instead(inner http.Handler, tool string, h http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		if strings.Contains(string(body), `"tools/call"`) && strings.Contains(string(body), `"name":"`+tool+`"`) {
			h(w, r)
			return
		}
		inner.ServeHTTP(w, r)
	})
}

func answer(w http.ResponseWriter, code int, media, body string) {
	w.Header().Set("Content-Type", media)
	w.WriteHeader(code)
	_, _ = io.WriteString(w, body)
}

// What one call meets costs that call an error, and the session nothing.
func TestOneBadAnswerCostsOneCall(t *testing.T) {
	endless := func(media, start, part string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", media)
			if _, err := io.WriteString(w, start); err != nil {
				return
			}
			for range 1 << 30 / len(part) {
				if _, err := io.WriteString(w, part); err != nil {
					return
				}
			}
		}
	}
	tests := []struct {
		name   string
		answer http.HandlerFunc
		want   string // in the call's error
	}{
		{"503", func(w http.ResponseWriter, _ *http.Request) { answer(w, 503, "text/html", "<html>") }, "answered 503 Service Unavailable"},
		{"400", func(w http.ResponseWriter, _ *http.Request) { answer(w, 400, "text/plain", "no") }, "answered 400 Bad Request"},
		{"401", func(w http.ResponseWriter, _ *http.Request) { answer(w, 401, "text/plain", "no") }, "answered 401 Unauthorized"},
		{"own error", func(w http.ResponseWriter, _ *http.Request) {
			answer(w, 400, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"theirs","data":{"a":1}}}`)
		}, `theirs (code -32000) {"a":1}`},
		{"own error with 200", func(w http.ResponseWriter, _ *http.Request) {
			answer(w, 200, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"theirs"}}`)
		}, `theirs (code -1)`},
		{"no JSON", func(w http.ResponseWriter, _ *http.Request) { answer(w, 200, "application/json", "{") }, "not JSON-RPC 2.0"},
		{"HTML", func(w http.ResponseWriter, _ *http.Request) { answer(w, 200, "text/html", "<html>") }, "text/html"},
		{"1 GiB announced", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1073741824")
			answer(w, 200, "application/json", `{"jsonrpc":"2.0",`)
		}, "longer than 65536 bytes"},
		{"1 GiB", endless("application/json", `{"jsonrpc":"2.0","result":"`, strings.Repeat("a", 1<<20)), "longer than 65536 bytes"},
		{"1 GiB as an error", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			endless("text/plain", "", strings.Repeat("a", 1<<20))(w, r)
		}, "answered 500"},
		{"stream without an answer", func(w http.ResponseWriter, _ *http.Request) { answer(w, 200, "text/event-stream", ": nothing\n\n") }, "without response"},
		{"redirect to a page", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/login", http.StatusFound) }, "makes it a GET"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlace(t, instead(streamable(newServer(), upstream.Legacy), "bad", tt.answer))
			s := converse(t, dial(t, sandbox.Remote{URL: p.URL}, door.Options{MaxMessage: 64 << 10}), upstream.Options{})
			_, err := s.Call(t.Context(), "tools/call", json.RawMessage(`{"name":"bad"}`), nil)
			var refusal *jsonrpc.Error
			if !errors.As(err, &refusal) {
				t.Fatalf("the call = %v, want an error of its own", err)
			}
			if got := strings.TrimSpace(refusal.Error() + " " + string(refusal.Data)); !strings.Contains(got, tt.want) {
				t.Errorf("the call = %s, want %s", got, tt.want)
			}
			if got := call(t, s, `{"name":"echo","arguments":{"still":"here"}}`, nil); got != `{"still":"here"}` {
				t.Errorf("the next call = %s, want its arguments", got)
			}
		})
	}
}

// A stream that breaks the rules ends the session, with a clear error.
func TestFloodEndsTheSession(t *testing.T) {
	flood := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		part := []byte("data: " + strings.Repeat("a", 1<<20))
		for {
			if _, err := w.Write(part); err != nil {
				return
			}
		}
	}
	p := newPlace(t, instead(streamable(newServer(), upstream.Modern), "bad", flood))
	s := converse(t, dial(t, sandbox.Remote{URL: p.URL}, door.Options{MaxMessage: 64 << 10}), upstream.Options{})
	_, err := s.Call(t.Context(), "tools/call", json.RawMessage(`{"name":"bad"}`), nil)
	var lost *upstream.LostError
	if !errors.As(err, &lost) || !strings.Contains(err.Error(), "65536 bytes") {
		t.Errorf("the call = %v, want a lost connection and the limit", err)
	}
}

// A server that never answers costs nothing but the time that the caller has.
func TestSilence(t *testing.T) {
	for _, era := range []upstream.Era{upstream.Legacy, upstream.Modern} {
		t.Run(string(era), func(t *testing.T) {
			begun, gone := make(chan struct{}), make(chan struct{})
			silent := func(_ http.ResponseWriter, r *http.Request) {
				close(begun)
				<-r.Context().Done()
				close(gone)
			}
			p := newPlace(t, instead(streamable(newServer(), era), "bad", silent))
			s := converse(t, dial(t, sandbox.Remote{URL: p.URL}, door.Options{}), upstream.Options{})
			ctx, cancel := context.WithCancel(t.Context())
			go func() { <-begun; cancel() }()
			if _, err := s.Call(ctx, "tools/call", json.RawMessage(`{"name":"bad"}`), nil); !errors.Is(err, context.Canceled) {
				t.Errorf("the call = %v, want %v", err, context.Canceled)
			}
			select {
			case <-gone: // the server is told by the end of the request
			case <-time.After(20 * time.Second):
				t.Error("the request of a cancelled call goes on")
			}
			if got := call(t, s, `{"name":"echo","arguments":{}}`, nil); got != "{}" {
				t.Errorf("the next call = %s, want {}", got)
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	gone := httptest.NewServer(nil)
	gone.Close()
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w, 401, "text/plain", canary) }))
	defer refusing.Close()
	untrusted := httptest.NewTLSServer(http.NotFoundHandler())
	untrusted.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	defer untrusted.Close()
	moved := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, refusing.URL+"/?leak="+r.URL.Query().Get("key"), http.StatusTemporaryRedirect)
	}))
	defer moved.Close()
	round := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.String(), http.StatusPermanentRedirect)
	}))
	defer round.Close()
	downgrading := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://"+r.Host, http.StatusTemporaryRedirect)
	}))
	defer downgrading.Close()
	tests := []struct {
		name    string
		url     string
		options door.Options
		want    string
		hint    bool
	}{
		{"nobody there", gone.URL, door.Options{}, "connection refused", false},
		{"no token", refusing.URL, door.Options{}, "answered 401 Unauthorized", true},
		{"unknown certificate", untrusted.URL, door.Options{}, "certificate", false},
		{"another origin", moved.URL, door.Options{}, "was not approved", true},
		{"round and round", round.URL, door.Options{}, "more than 5 redirects", false},
		{"down to http", downgrading.URL, door.Options{TLS: downgrading.Client().Transport.(*http.Transport).TLSClientConfig}, "was not approved", true},
		{"no such name", "http://intranet.invalid", door.Options{}, "no such host", false},
	}
	for _, tt := range tests {
		for _, transport := range []string{catalog.StreamableHTTP, catalog.SSE} {
			t.Run(tt.name+" "+transport, func(t *testing.T) {
				server := sandbox.Remote{
					URL: tt.url + "/?key=${KEY}", Transport: transport,
					Headers: []sandbox.Header{{Name: "Authorization", Template: "Bearer ${KEY}"}},
				}
				way, err := door.New(server, map[string]secret.Value{"KEY": secret.NewValue(canary)}, tt.options)
				if err != nil {
					t.Fatal(err)
				}
				var s *upstream.Session
				p, err := remote.Open(t.Context(), way, nil)
				if err == nil {
					s, err = upstream.Connect(t.Context(), p, upstream.Options{Era: upstream.Legacy})
				}
				if err == nil {
					t.Fatalf("connected: %v", s.Close())
				}
				if !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), canary) {
					t.Errorf("Connect() = %v, want %s and no secret", err, tt.want)
				}
				var hinted interface{ Hint() string }
				if got := errors.As(err, &hinted) && hinted.Hint() != ""; got != tt.hint {
					t.Errorf("Connect() = %v, has a hint: %v, want %v", err, got, tt.hint)
				}
			})
		}
	}
}

// A name that stands for a private address is refused when it is connected to,
// whatever it stood for before; and is let through if the grant names it.
func TestNameOfPrivateAddress(t *testing.T) {
	inner := streamable(newServer(), upstream.Legacy)
	p := newPlace(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Host = "localhost" // the SDK's server would refuse the name
		inner.ServeHTTP(w, r)
	}))
	_, port, err := net.SplitHostPort(strings.TrimPrefix(p.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	name := attackersName(t)
	address := sandbox.Remote{URL: "http://" + name + ":" + port}
	_, err = upstream.Connect(t.Context(), dial(t, address, door.Options{}), upstream.Options{})
	var refused *door.AddressError
	if !errors.As(err, &refused) || refused.Hint() == "" {
		t.Errorf("Connect(%s) = %v, want an *AddressError with a hint", address.URL, err)
	}
	select {
	case <-p.seen:
		t.Errorf("a request reached %s", address.URL)
	default:
	}
	address.Addresses = []string{"127.0.0.0/8", "::1"}
	if got := call(t, converse(t, dial(t, address, door.Options{}), upstream.Options{}), `{"name":"echo","arguments":{}}`, nil); got != "{}" {
		t.Errorf("a granted call = %s, want {}", got)
	}
}

// attackersName returns a name that the resolver of this process, for the time
// of the test, says is this machine's.
func attackersName(t *testing.T) string {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		query := make([]byte, 512)
		for {
			n, from, err := server.ReadFrom(query)
			if err != nil {
				return
			}
			if n < 17 {
				continue
			}
			end := 12 + bytes.IndexByte(query[12:n], 0) + 5 // of the question: name, type, class
			reply := append([]byte(nil), query[:end]...)
			reply[2], reply[3] = 0x81, 0x80                   // an answer without error (RFC 1035, 4.1.1)
			copy(reply[4:12], []byte{0, 1, 0, 0, 0, 0, 0, 0}) // one question, no answer
			if query[end-3] == 1 {                            // type A
				reply[7] = 1
				reply = append(reply, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, 1)
			}
			_, _ = server.WriteTo(reply, from)
		}
	})
	before := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
	t.Cleanup(func() {
		net.DefaultResolver = before
		_ = server.Close()
		serving.Wait()
	})
	return "rebound.example.com"
}

// Secrets reach the server, and nothing else.
func TestSecrets(t *testing.T) {
	var query atomic.Value
	inner := streamable(newServer(), upstream.Legacy)
	p := newPlace(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			http.Redirect(w, r, "/moved?"+r.URL.RawQuery, http.StatusTemporaryRedirect)
			return
		}
		query.Store(r.URL.Query().Get("key"))
		inner.ServeHTTP(w, r)
	}))
	var log strings.Builder
	server := sandbox.Remote{
		URL:       p.URL + "/?key=${KEY}&plain=1",
		Transport: catalog.StreamableHTTP,
		Headers: []sandbox.Header{
			{Name: "authorization", Template: "Bearer ${KEY}"}, {Name: "X-Other", Template: "${MISSING}"}, {Name: "X-Plain", Template: "yes"},
		},
	}
	way, err := door.New(server, map[string]secret.Value{"KEY": secret.NewValue(canary + "&%")}, door.Options{})
	if err != nil {
		t.Fatal(err)
	}
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s := converse(t, open(t, way, logger), upstream.Options{Logger: logger})
	call(t, s, `{"name":"echo","arguments":{}}`, nil)
	if got, want := query.Load(), canary+"&%"; got != want {
		t.Errorf("key in the query = %q, want %q", got, want)
	}
	got := waitFor(t, p, func(h http.Header) bool { return h.Get("Mcp-Session-Id") != "" })
	if got.Get("Authorization") != "Bearer "+canary+"&%" || got.Get("X-Plain") != "yes" || got.Get("Mcp-Protocol-Version") != "2025-11-25" {
		t.Errorf("headers of a call = %v, want the entry's and the version", got)
	}
	if _, there := got["X-Other"]; there {
		t.Errorf("X-Other = %q, want none: its secret is not set", got.Get("X-Other"))
	}
	p.CloseClientConnections()
	p.Close()
	_, err = s.Call(t.Context(), "tools/call", json.RawMessage(`{"name":"echo"}`), nil)
	if err == nil {
		t.Error("a call of a server that is gone = nil, want an error")
	}
	_ = s.Close() // its error is the stream's, which has none
	if all := log.String() + fmt.Sprintf("%v %+v", err, err); strings.Contains(all, canary) || strings.Contains(all, url.QueryEscape(canary+"&%")) {
		t.Errorf("a secret was told: %s", all)
	}
}

// A server that was started anew does not know the session: the conversation
// ends, and the next one works.
func TestServerRestarts(t *testing.T) {
	p := newPlace(t, streamable(newServer(), upstream.Legacy))
	address := sandbox.Remote{URL: p.URL}
	s := converse(t, dial(t, address, door.Options{}), upstream.Options{})
	call(t, s, `{"name":"echo","arguments":{}}`, nil)
	p.serve(streamable(newServer(), upstream.Legacy))
	_, err := s.Call(t.Context(), "tools/call", json.RawMessage(`{"name":"echo","arguments":{}}`), nil)
	var lost *upstream.LostError
	if !errors.As(err, &lost) || lost.Delivered || !strings.Contains(err.Error(), "ended the session") {
		t.Errorf("a call after the restart = %v, want a lost session, and that it can be sent again", err)
	}
	s = converse(t, dial(t, address, door.Options{}), upstream.Options{Era: upstream.Legacy})
	if got := call(t, s, `{"name":"echo","arguments":{}}`, nil); got != "{}" {
		t.Errorf("a call in a new session = %s, want {}", got)
	}
}

// A request that the server refused because it does not know the session can
// be sent again, also when the stream of the server's messages met it first.
func TestServerRestartsBehindStream(t *testing.T) {
	inner := streamable(newServer(), upstream.Legacy)
	told := make(chan struct{})
	p := newPlace(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // a short one is no call
		switch {
		case r.Method == http.MethodGet:
			http.Error(w, "no such session", http.StatusNotFound)
			close(told)
		case bytes.Contains(body, []byte("tools/call")):
			<-told
			http.Error(w, "no such session", http.StatusNotFound)
		default:
			r.Body = io.NopCloser(bytes.NewReader(body))
			inner.ServeHTTP(w, r)
		}
	}))
	s := converse(t, dial(t, sandbox.Remote{URL: p.URL}, door.Options{}), upstream.Options{Era: upstream.Legacy})
	_, err := s.Call(t.Context(), "tools/call", json.RawMessage(`{"name":"echo","arguments":{}}`), nil)
	var lost *upstream.LostError
	if !errors.As(err, &lost) || lost.Delivered || !strings.Contains(err.Error(), "ended the session") {
		t.Errorf("a call in a session that has ended = %v, want a lost session, and that it can be sent again", err)
	}
}

// The stream of the server's own messages is opened again when it breaks.
func TestStreamBreaks(t *testing.T) {
	inner := newServer()
	p := newPlace(t, streamable(inner, upstream.Legacy))
	changed := make(chan string, 10)
	s := converse(t, dial(t, sandbox.Remote{URL: p.URL}, door.Options{}), upstream.Options{
		Era: upstream.Legacy, Notify: func(method string, _ json.RawMessage) { changed <- method },
	})
	isStream := func(h http.Header) bool { return h.Get("Accept") == "text/event-stream" }
	waitFor(t, p, isStream)
	p.CloseClientConnections()
	waitFor(t, p, isStream)
	// The change is told on whatever stream there is by then.
	call(t, s, `{"name":"grow"}`, nil)
	select {
	case <-changed:
	case <-time.After(20 * time.Second):
		t.Error("no notification after the stream was opened again")
	}
}
