package remote

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dockgate/dockgate/internal/jsonrpc"
)

// The pauses before a stream that broke is opened again.
const (
	firstPause = time.Second
	maxPause   = 30 * time.Second
)

// errNoStream is a server that offers no stream of its own messages.
var errNoStream = errors.New("no stream of the server's own messages")

// listen keeps the stream open on which a server of the legacy era sends what
// belongs to no request of ours, for as long as the server offers one and the
// session lasts (MCP 2025-11-25, basic/transports, "Listening for Messages
// from the Server"). The SDK opens it only for its own client.
func (s *stream) listen(ctx context.Context) {
	l := &listener{door: s.door, session: s.conn.SessionID()}
	pause := firstPause
	for {
		opened, err := s.follow(ctx, l)
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
		if opened {
			pause = firstPause
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		pause = min(2*pause, maxPause)
	}
}

// follow passes on the messages of one stream until it ends.
func (s *stream) follow(ctx context.Context, l *listener) (opened bool, err error) {
	transport := &mcp.SSEClientTransport{Endpoint: s.door.endpoint.String(), HTTPClient: client(l), MaxEventSize: s.door.limit}
	conn, err := transport.Connect(ctx)
	if err != nil {
		return false, plain(err)
	}
	defer func() { _ = conn.Close() }()
	for {
		m, err := conn.Read(ctx)
		if errors.Is(err, io.EOF) || ctx.Err() != nil {
			return true, err
		}
		if err != nil { // one event that is no message
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

// A listener opens the stream of a session. The SDK's reader of event streams
// is that of the older transport, whose streams begin with an event that names
// an endpoint; this one's do not, so it is put before them.
type listener struct {
	door    *door
	session string
	last    string // the id of the last event; one stream at a time uses it
}

func (l *listener) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	if l.session != "" {
		req.Header.Set(headerSession, l.session)
	}
	if l.last != "" {
		req.Header.Set(headerLastID, l.last)
	}
	resp, err := l.door.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")) // else it is ""
	switch {
	case resp.StatusCode == http.StatusNotFound && l.session != "":
		_ = resp.Body.Close()
		return nil, errSessionGone
	case resp.StatusCode >= 300:
		return resp, nil
	case media != "text/event-stream":
		_ = resp.Body.Close()
		return nil, errNoStream
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(strings.NewReader("event: endpoint\ndata: /\n\n"), &ids{from: resp.Body, last: &l.last}), resp.Body}
	return resp, nil
}

// maxEventID is how long the id of an event may be, to be sent back.
const maxEventID = 1 << 10

// ids notes the id of the last event that was read.
type ids struct {
	from io.Reader
	last *string
	line []byte // the start of the line that is being read
}

func (i *ids) Read(p []byte) (int, error) {
	n, err := i.from.Read(p)
	for rest := p[:n]; len(rest) > 0; {
		part, after, whole := bytes.Cut(rest, []byte("\n"))
		if room := maxEventID - len(i.line); room > 0 {
			i.line = append(i.line, part[:min(room, len(part))]...)
		}
		rest = after
		if !whole {
			break
		}
		if id, found := bytes.CutPrefix(i.line, []byte("id:")); found && len(i.line) < maxEventID {
			*i.last = strings.TrimSpace(string(id))
		}
		i.line = i.line[:0]
	}
	return n, err
}
