package remote

import (
	"context"
	"errors"
	"net/http"
	"time"

	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/dockgate/dockgate/internal/remote/door"
)

// The pauses before a stream that broke is opened again.
const (
	firstPause = time.Second
	maxPause   = 30 * time.Second
)

// openTime is how long requests wait for the stream to be open: what a server
// sends on it before is lost to most. Servers that offer none say so at once.
const openTime = 3 * time.Second

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
		var status *door.StatusError
		var other *door.OriginError
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, errSessionGone):
			s.gone()
			return
		case errors.Is(err, door.ErrNoEvents), errors.As(err, &other),
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
	events, err := s.door.Events(ctx, l.session, l.last)
	if err != nil {
		return false, plain(err)
	}
	defer func() { _ = events.Close() }()
	opened()
	for {
		e, err := events.Next()
		if err != nil {
			return true, err
		}
		if e.ID != "" {
			l.last = e.ID
		}
		if e.Retry > 0 {
			l.retry = e.Retry
		}
		if len(e.Data) == 0 { // only the id counts
			continue
		}
		m, err := sdkrpc.DecodeMessage(e.Data)
		if err != nil {
			s.log.DebugContext(ctx, "event dropped", "err", err)
			continue
		}
		s.pass(m) // an answer too, to a request whose own stream has broken
	}
}
