package engine

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"

	"github.com/moby/moby/client"
)

// Tunnel returns a proxy that containers with network reach, as that of a
// company: the network of an engine of a test may lead nowhere. It fails if
// the engine's network is not on this machine. The caller closes it.
func Tunnel(ctx context.Context, api *client.Client) (*httptest.Server, error) {
	found, err := api.NetworkInspect(ctx, "bridge", client.NetworkInspectOptions{})
	if err != nil {
		return nil, err
	}
	for _, subnet := range found.Network.IPAM.Config {
		if !subnet.Gateway.Is4() {
			continue
		}
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", subnet.Gateway.String()+":0")
		if err != nil {
			return nil, err
		}
		server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.HandlerFunc(connect)}} //nolint:gosec // the test ends it
		server.Start()
		return server, nil
	}
	return nil, errors.New("network bridge has no gateway")
}

// connect answers CONNECT.
func connect(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		http.Error(w, "CONNECT only", http.StatusMethodNotAllowed)
		return
	}
	to, err := new(net.Dialer).DialContext(r.Context(), "tcp", r.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer func() { _ = to.Close() }()
	w.WriteHeader(http.StatusOK)
	from, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = from.Close() }()
	done := make(chan struct{})
	go func() {
		_, _ = io.Copy(to, from)
		_ = to.(*net.TCPConn).CloseWrite()
		close(done)
	}()
	_, _ = io.Copy(from, to)
	_ = from.Close()
	<-done
}
