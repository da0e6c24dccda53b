package remote

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"time"

	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/dockgate/dockgate/internal/jsonrpc"
)

// The pauses before a stream that broke is opened again.
const (
	firstPause = time.Second
	maxPause   = 30 * time.Second
)

// openTime is how long requests wait for the stream to be open: what a server
// sends on it before is lost to most. Servers that offer none say so at once.
const openTime = 3 * time.Second

// errNoStream is a server that offers no stream of its own messages.
var errNoStream = errors.New("no stream of the server's own messages")

// errRefreshed is a server that did not take the token, but may take the new one.
var errRefreshed = errors.New("the login was refreshed")

// listen keeps the stream open on which a server of the legacy era sends what
// belongs to no request of ours, for as long as the server offers one and the
// session lasts (MCP 2025-11-25, basic/transports, "Listening for Messages
// from the Server"). The SDK opens it only for its own client. Opened is called
// when the stream is open for the first time, or cannot be.
func (s *stream) listen(ctx context.Context, opened func()) {
	defer opened()
	l := &listener{session: s.conn.SessionID()}
	pause := firstPause
	for {
		was, err := s.follow(ctx, l, opened)
		opened()
		var status *StatusError
		var other *OriginError
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, errSessionGone):
			s.gone()
			return
		case errors.Is(err, errNoStream), errors.As(err, &other),
			errors.As(err, &status) && status.Code < http.StatusInternalServerError && status.Code != http.StatusTooManyRequests:
			s.log.DebugContext(ctx, "server sends nothing by itself", "err", err)
			return
		}
		s.log.DebugContext(ctx, "stream of the server's messages ended", "err", err)
		if was {
			pause = firstPause
		}
		timer := time.NewTimer(max(pause, l.retry))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		pause = min(2*pause, maxPause)
	}
}

// A listener is what is known of the stream of a session when it is opened
// again.
type listener struct {
	session string
	last    string        // the id of the last event
	retry   time.Duration // the pause that the server has asked for
}

// follow passes on the messages of one stream until it ends.
func (s *stream) follow(ctx context.Context, l *listener, opened func()) (was bool, err error) {
	body, err := s.door.events(ctx, l)
	if err != nil {
		return false, plain(err)
	}
	defer func() { _ = body.Close() }()
	opened()
	events := newEventReader(body, s.door.limit)
	for {
		e, err := events.next()
		if err != nil {
			return true, err
		}
		if e.id != "" {
			l.last = e.id
		}
		if e.retry > 0 {
			l.retry = e.retry
		}
		if len(e.data) == 0 { // only the id counts
			continue
		}
		m, err := sdkrpc.DecodeMessage(e.data)
		if err != nil {
			s.log.DebugContext(ctx, "event dropped", "err", err)
			continue
		}
		switch m := m.(type) {
		case *sdkrpc.Request:
			passed := jsonrpc.Message{Method: m.Method, Params: m.Params}
			if m.IsCall() {
				passed.ID = rawID(m.ID)
			}
			s.put(passed)
		case *sdkrpc.Response: // of a request whose own stream has broken
			s.answered(m)
			s.put(jsonrpc.Message{ID: rawID(m.ID), Result: m.Result, Error: refusalOf(m.Error)})
		}
	}
}

// events opens the stream of a session's events.
func (d *door) events(ctx context.Context, l *listener) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.endpoint.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "text/event-stream")
	if l.session != "" {
		req.Header.Set(headerSession, l.session)
	}
	if l.last != "" {
		req.Header.Set(headerLastID, l.last)
	}
	if err := d.sign(req); err != nil {
		return nil, err
	}
	resp, err := client(d).Do(req)
	if err != nil {
		return nil, err
	}
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")) // else it is ""
	switch {
	case resp.StatusCode == http.StatusOK && media == "text/event-stream":
		return resp.Body, nil
	case resp.StatusCode == http.StatusUnauthorized && d.oauth != nil:
		if err := d.oauth.Authorize(ctx, req, resp); err != nil { // closes the body
			return nil, err
		}
		return nil, errRefreshed
	}
	if err := resp.Body.Close(); err != nil {
		return nil, err
	}
	switch {
	case resp.StatusCode == http.StatusNotFound && l.session != "":
		return nil, errSessionGone
	case resp.StatusCode < http.StatusMultipleChoices:
		return nil, errNoStream
	}
	return nil, &StatusError{Code: resp.StatusCode}
}
