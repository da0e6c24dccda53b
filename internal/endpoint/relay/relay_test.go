package relay_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/endpoint/relay"
	"github.com/dockgate/dockgate/internal/gateway/gatewaytest"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A room is a gateway of the tests' house.
type room struct{ house *gatewaytest.House }

func (r room) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

type output struct{ net.Conn }

func (output) Close() error { return nil }

func (r room) Serve(ctx context.Context, connection net.Conn) error {
	return r.house.Serve(ctx, connection, output{connection}, principal.Local)
}

// hanging is a server whose tool goes on until it is let go.
type hanging struct{ began, let chan struct{} }

func (h hanging) serve(s *mcp.Server) {
	for name, do := range map[string]func(context.Context){
		"echo": func(context.Context) {},
		"hang": func(ctx context.Context) {
			h.began <- struct{}{}
			select {
			case <-h.let:
			case <-ctx.Done():
			}
		},
	} {
		s.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				do(ctx)
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: name}}}, nil
			})
	}
}

// A site is a host at a socket, which can be started again.
type site struct {
	t      *testing.T
	socket string
	server hanging
	house  *gatewaytest.House
	idle   time.Duration

	mu     sync.Mutex
	opened []string // keys of the rooms
	end    context.CancelFunc
	ended  chan error
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{
		t: t, socket: filepath.Join(t.TempDir(), "s"), idle: time.Hour,
		server: hanging{began: make(chan struct{}, 8), let: make(chan struct{})},
	}
	s.house = gatewaytest.Build(t, gatewaytest.Options{Mode: approval.ModeAll, Active: []string{"one"}, Logger: slog.New(slog.DiscardHandler)},
		map[string]sandboxtest.Server{"test/one": gatewaytest.SDKServer(s.server.serve)})
	t.Cleanup(func() { _ = s.stop() })
	return s
}

// start starts a host.
func (s *site) start() {
	s.t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(s.t.Context(), "unix", s.socket)
	check(s.t, err)
	host := &relay.Host{
		Version: "1", Idle: s.idle, Logger: slog.New(slog.DiscardHandler),
		Key: func(_ context.Context, hello relay.Hello) (string, error) { return hello.Dir, nil },
		Open: func(_ context.Context, hello relay.Hello) (relay.Room, error) {
			if hello.Dir == "/bad" {
				return nil, errors.New("no such folder")
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			s.opened = append(s.opened, hello.Dir)
			return room{s.house}, nil
		},
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- host.Run(ctx, listener) }()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end, s.ended = cancel, ended
}

// stop ends the host, as a crash does for its relays.
func (s *site) stop() error {
	s.mu.Lock()
	end, ended := s.end, s.ended
	s.end = nil
	s.mu.Unlock()
	if end == nil {
		return nil
	}
	end()
	return <-ended
}

// dial joins the host, and starts it if there is none.
func (s *site) dial(ctx context.Context) (net.Conn, error) {
	connection, err := (&net.Dialer{}).DialContext(ctx, "unix", s.socket)
	if err == nil {
		return connection, nil
	}
	s.start()
	return (&net.Dialer{}).DialContext(ctx, "unix", s.socket)
}

// join connects a client of the official SDK through a relay.
func (s *site) join(dir, version string, o *mcp.ClientOptions) *mcp.ClientSession {
	s.t.Helper()
	toRelay, fromClient := io.Pipe()
	toClient, fromRelay := io.Pipe()
	r := &relay.Relay{Hello: relay.Hello{Version: "1", Dir: dir}, Dial: s.dial}
	ran := make(chan error, 1)
	go func() { ran <- r.Run(context.WithoutCancel(s.t.Context()), toRelay, fromRelay) }()
	client := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, o)
	session, err := client.Connect(s.t.Context(), &mcp.IOTransport{Reader: toClient, Writer: fromClient}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	check(s.t, err)
	s.t.Cleanup(func() {
		_ = session.Close()
		_ = fromClient.Close()
		if err := <-ran; err != nil {
			s.t.Errorf("Run = %v, want nil when the client leaves", err)
		}
	})
	return session
}

func (s *site) call(session *mcp.ClientSession, name string) error {
	result, err := session.CallTool(s.t.Context(), &mcp.CallToolParams{Name: name, Arguments: map[string]any{}})
	if err == nil && result.IsError {
		err = errors.New("the result is an error")
	}
	return err
}

func versions() []string { return []string{"2025-11-25", "2026-07-28"} }

// Clients with the same key share a room and its containers, others do not.
func TestShared(t *testing.T) {
	s := newSite(t)
	s.start()
	for _, version := range versions() {
		for _, dir := range []string{"/a", "/a", "/b"} {
			check(t, s.call(s.join(dir, version, nil), "one__echo"))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if got := strings.Join(s.opened, " "); got != "/a /b" {
		t.Errorf("rooms were opened for %s, want one for /a and one for /b", got)
	}
	// A server that speaks both eras is spoken to in its client's own.
	if got := s.house.Fake.Running(); len(got) != 2 {
		t.Errorf("%v run for six clients of two eras, want one for each era", got)
	}
}

// When the gateway ends, a call under way gets an error, and the next works.
func TestCrash(t *testing.T) {
	for _, version := range versions() {
		s := newSite(t)
		session := s.join("/a", version, nil)
		check(t, s.call(session, "one__echo"))
		answered := make(chan error, 1)
		go func() { answered <- s.call(session, "one__hang") }()
		<-s.server.began
		check(t, s.stop())
		if err := <-answered; err == nil || !strings.Contains(err.Error(), "gateway has ended") {
			t.Errorf("%s: the call under way = %v, want that the gateway has ended", version, err)
		}
		for range 2 {
			if err := s.call(session, "one__echo"); err != nil {
				t.Errorf("%s: the next call = %v", version, err)
			}
		}
		if len(s.opened) != 2 {
			t.Errorf("%s: %d rooms were opened, want 2", version, len(s.opened))
		}
	}
}

// Who cannot be served is told why, and nothing of theirs is read.
func TestRefused(t *testing.T) {
	s := newSite(t)
	tests := []struct {
		hello   relay.Hello
		version bool
		want    string
	}{
		{relay.Hello{Version: "2", Dir: "/a"}, true, "of version 1, this is 2"},
		{relay.Hello{Version: "1", Dir: "/bad"}, false, "no such folder"},
	}
	for _, tt := range tests {
		err := (&relay.Relay{Hello: tt.hello, Dial: s.dial}).Run(t.Context(), nil, nil)
		var refused *relay.RefusedError
		if !errors.As(err, &refused) || refused.Version != tt.version || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Run(%+v) = %v, want refused: %s", tt.hello, err, tt.want)
		}
	}
}

// A host that nobody uses any more ends.
func TestIdle(t *testing.T) {
	s := newSite(t)
	s.idle = 50 * time.Millisecond
	s.start()
	r := &relay.Relay{Hello: relay.Hello{Version: "1", Dir: "/a"}, Dial: s.dial}
	in, client := io.Pipe()
	check(t, client.Close())
	check(t, r.Run(t.Context(), in, output{}))
	select {
	case err := <-s.ended:
		check(t, err)
		s.end()
		s.mu.Lock()
		s.end = nil
		s.mu.Unlock()
	case <-time.After(30 * time.Second):
		t.Error("the host goes on without a client")
	}
	if _, err := os.Stat(s.socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("socket after the end: %v, want none", err)
	}
}

// FuzzHello says whatever there is: the host must refuse it and go on.
func FuzzHello(f *testing.F) {
	f.Add([]byte(`{"version":"1","dir":"/a"}` + "\n"))
	f.Add([]byte(`{"version":1}` + "\n"))
	f.Add([]byte("\n"))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, said []byte) {
		ours, theirs := net.Pipe()
		listener := &single{connection: theirs, closed: make(chan struct{})}
		host := &relay.Host{
			Version: "1", Idle: time.Hour, Logger: slog.New(slog.DiscardHandler),
			Key:  func(context.Context, relay.Hello) (string, error) { return "", errors.New("nobody is served") },
			Open: func(context.Context, relay.Hello) (relay.Room, error) { panic("opened without a key") },
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- host.Run(ctx, listener) }()
		heard := make(chan []byte, 1)
		go func() {
			answer, _ := io.ReadAll(ours)
			heard <- answer
		}()
		_, _ = ours.Write(append(said, '\n')) // it may refuse after the first line
		cancel()
		check(t, <-ended)
		check(t, ours.Close())
		if answer := <-heard; len(answer) > 0 && !json.Valid(answer) {
			t.Errorf("hello %q is answered with %q", said, answer)
		}
	})
}

// A single is a listener with one connection.
type single struct {
	mu         sync.Mutex
	connection net.Conn
	closed     chan struct{}
	once       sync.Once
}

func (s *single) Accept() (net.Conn, error) {
	s.mu.Lock()
	connection := s.connection
	s.connection = nil
	s.mu.Unlock()
	if connection != nil {
		return connection, nil
	}
	<-s.closed
	return nil, net.ErrClosed
}

func (s *single) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}

func (s *single) Addr() net.Addr { return &net.UnixAddr{} }
