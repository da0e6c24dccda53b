package door

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// maxEventID is how long the id of an event may be, to be sent back.
	maxEventID = 1 << 10
	// maxRetry is the longest pause that a server can ask for.
	maxRetry = time.Minute
)

// An Event is one of a stream of events (HTML Standard, "Server-sent events").
type Event struct {
	// ID is sent back to a server when its stream is opened again; empty if the
	// event has none.
	ID string
	// Data is a message, or empty.
	Data []byte
	// Retry is the pause that the server asks for before that; zero if it
	// asks for none.
	Retry time.Duration
}

// Events are what a server sends by itself. The SDK's reader is for streams of
// whole sessions: it takes an event without data, with which servers begin a
// stream that they will end soon, for the end of the stream, and drops what came
// just before the end.
type Events struct {
	body  io.Closer
	in    *bufio.Reader
	limit int // of an event, in bytes
}

// Events opens the stream on which the server of a session sends what belongs
// to no request, after the event whose id is last; "" is from now on. It returns
// [ErrNoEvents] if the server offers none, and [mcp.ErrSessionMissing] if it
// does not know the session. Close the stream when done.
func (d *Door) Events(ctx context.Context, session, last string) (*Events, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.endpoint.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "text/event-stream")
	if session != "" {
		req.Header.Set(headerSession, session)
	}
	if last != "" {
		req.Header.Set(headerLastID, last)
	}
	if err := d.sign(req); err != nil {
		return nil, err
	}
	resp, err := d.client().Do(req)
	if err != nil {
		return nil, err
	}
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")) // else it is ""
	switch {
	case resp.StatusCode == http.StatusOK && media == "text/event-stream":
		return &Events{body: resp.Body, in: bufio.NewReader(resp.Body), limit: d.limit}, nil
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
	case resp.StatusCode == http.StatusNotFound && session != "":
		return nil, mcp.ErrSessionMissing
	case resp.StatusCode < http.StatusMultipleChoices:
		return nil, ErrNoEvents
	}
	return nil, &StatusError{Code: resp.StatusCode}
}

// Close ends the stream.
func (r *Events) Close() error { return r.body.Close() }

// Next returns the next event. One that the stream's end cuts off is none.
func (r *Events) Next() (Event, error) {
	var found Event
	left, begun := r.limit, false
	for {
		line, err := r.line(left)
		if err != nil {
			return Event{}, err
		}
		left -= len(line)
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			if begun {
				return found, nil
			}
			left = r.limit
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "data":
			if found.Data != nil {
				found.Data = append(found.Data, '\n')
			}
			found.Data = append(found.Data, value...)
		case "id":
			if len(value) <= maxEventID && bytes.IndexByte(value, 0) < 0 {
				found.ID = strings.TrimSpace(string(value))
			}
		case "retry":
			if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
				found.Retry = min(time.Duration(ms)*time.Millisecond, maxRetry) //nolint:gosec // of 31 bits
			}
		default: // a comment, or for readers of other streams
			continue
		}
		begun = true
	}
}

// line reads a line with its end, of no more than limit bytes.
func (r *Events) line(limit int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.in.ReadSlice('\n')
		if len(line)+len(part) > limit {
			return nil, &oversizeError{r.limit}
		}
		if err == nil && line == nil {
			return part, nil
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}
