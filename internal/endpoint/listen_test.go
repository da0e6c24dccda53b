package endpoint_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dockgate/dockgate/internal/endpoint"
)

// Clients reach the same over a unix socket, which is its owner's alone.
func TestUnixSocket(t *testing.T) {
	f := open(t, options{}, echoing())
	path := filepath.Join(t.TempDir(), "s")
	listener, err := endpoint.Listen(t.Context(), "unix:"+path)
	check(t, err)
	stop := f.serve(t, listener)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("socket = %v, %v, want mode 0600", info.Mode(), err)
	}
	client := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}}
	defer client.CloseIdleConnections()
	session, err := newClient(nil).Connect(t.Context(), &mcp.StreamableClientTransport{
		Endpoint: "http://dockgate/mcp", HTTPClient: &http.Client{Transport: client},
	}, nil)
	check(t, err)
	if _, err := session.ListTools(t.Context(), nil); err != nil {
		t.Errorf("ListTools = %v", err)
	}
	check(t, session.Close())
	check(t, stop())
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("socket after the end: %v, want none", err)
	}
}

// What was left behind is replaced; what lives, or is no socket, is not.
func TestListenWhereSomethingIs(t *testing.T) {
	listen := func(path string) (net.Listener, error) { return endpoint.Listen(t.Context(), "unix:"+path) }
	var inUse *endpoint.InUseError

	path := filepath.Join(t.TempDir(), "ours")
	first, err := listen(path)
	check(t, err)
	if _, err := listen(path); !errors.As(err, &inUse) || inUse.Hint() == "" {
		t.Errorf("Listen where a gateway listens = %v, want an InUseError", err)
	}
	check(t, first.Close())

	other := filepath.Join(t.TempDir(), "others")
	theirs, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", other)
	check(t, err)
	if _, err := listen(other); !errors.As(err, &inUse) {
		t.Errorf("Listen where another program listens = %v, want an InUseError", err)
	}
	theirs.(*net.UnixListener).SetUnlinkOnClose(false)
	check(t, theirs.Close())
	again, err := listen(other)
	if err != nil {
		t.Fatalf("Listen where a socket was left = %v", err)
	}
	check(t, again.Close())

	file := filepath.Join(t.TempDir(), "file")
	check(t, os.WriteFile(file, []byte("mine"), 0o600))
	if _, err := listen(file); err == nil {
		t.Error("Listen where a file is = nil, want an error")
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != "mine" {
		t.Errorf("the file is %q, %v afterwards, want it untouched", data, err)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	check(t, err)
	for _, entry := range entries {
		if entry.IsDir() {
			t.Errorf("%s is left", entry.Name())
		}
	}
}

// Who listens where another program does is told what can be done.
func TestListenTaken(t *testing.T) {
	taken, err := endpoint.Listen(t.Context(), "127.0.0.1:0")
	check(t, err)
	defer func() { check(t, taken.Close()) }()
	second, err := endpoint.Listen(t.Context(), taken.Addr().String())
	var want *endpoint.TakenError
	if !errors.As(err, &want) || want.Address != taken.Addr().String() || want.Hint() == "" {
		t.Errorf("Listen(%s) = %v, %v, want a TakenError of that address", taken.Addr(), second, err)
	}
}
