package remote

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"
)

const (
	// maxEventID is how long the id of an event may be, to be sent back.
	maxEventID = 1 << 10
	// maxRetry is the longest pause that a server can ask for.
	maxRetry = time.Minute
)

// An event is one of a stream of events (HTML Standard, "Server-sent events").
type event struct {
	// id is sent back to a server when its stream is opened again; empty if the
	// event has none.
	id string
	// data is a message, or empty.
	data []byte
	// retry is the pause that the server asks for before that; zero if it
	// asks for none.
	retry time.Duration
}

// An eventReader reads the events of a stream. The SDK's reader is for streams
// of whole sessions: it takes an event without data, with which servers begin a
// stream that they will end soon, for the end of the stream, and drops what came
// just before the end.
type eventReader struct {
	in    *bufio.Reader
	limit int // of an event, in bytes
}

func newEventReader(in io.Reader, limit int) *eventReader {
	return &eventReader{in: bufio.NewReader(in), limit: limit}
}

// next returns the next event. One that the stream's end cuts off is none.
func (r *eventReader) next() (event, error) {
	var found event
	left, begun := r.limit, false
	for {
		line, err := r.line(left)
		if err != nil {
			return event{}, err
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
			if found.data != nil {
				found.data = append(found.data, '\n')
			}
			found.data = append(found.data, value...)
		case "id":
			if len(value) <= maxEventID && bytes.IndexByte(value, 0) < 0 {
				found.id = strings.TrimSpace(string(value))
			}
		case "retry":
			if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
				found.retry = min(time.Duration(ms)*time.Millisecond, maxRetry) //nolint:gosec // of 31 bits
			}
		default: // a comment, or for readers of other streams
			continue
		}
		begun = true
	}
}

// line reads a line with its end, of no more than limit bytes.
func (r *eventReader) line(limit int) ([]byte, error) {
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
