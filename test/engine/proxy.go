package engine

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
)

// A Proxy stands before an engine, and lets a test see what it is asked, hold
// it back, or cut it off.
type Proxy struct {
	// Host is its address, for a gateway.
	Host   string
	server *http.Server
	served chan error
}

// NewProxy listens on a socket in a folder. Each request is shown to before,
// which may wait, and is then passed on to the engine at host, a Unix socket;
// if before returns an error, the connection is cut instead. An engine that
// does not answer looks as if the connection broke.
func NewProxy(ctx context.Context, host, dir string, before func(*http.Request) error) (*Proxy, error) {
	target := strings.TrimPrefix(host, "unix://")
	socket := filepath.Join(dir, "proxy.sock")
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", target)
		},
		DisableCompression: true,
		DisableKeepAlives:  true, // an engine that restarts leaves no old connections
	}
	pass := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: "engine"})
		},
		Transport:     transport,
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	p := &Proxy{Host: "unix://" + socket, served: make(chan error, 1)}
	p.server = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { //nolint:gosec // a test's own
		if err := before(r); err != nil {
			panic(http.ErrAbortHandler)
		}
		pass.ServeHTTP(w, r)
	})}
	go func() { p.served <- p.server.Serve(listener) }()
	return p, nil
}

// Close cuts every connection.
func (p *Proxy) Close() error {
	err := p.server.Close()
	if served := <-p.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
