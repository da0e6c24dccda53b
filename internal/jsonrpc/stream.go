package jsonrpc

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
	"unicode/utf8"
)

// DefaultLimit is the longest line that a [Reader] accepts unless told
// otherwise: 16 MiB, as in the official Go SDK.
const DefaultLimit = 16 << 20

// ends is how much of both ends of a line that is too long is kept.
const ends = 512

// A LineError is a line that was longer than the limit. It is dropped up to
// its line break; the stream goes on.
type LineError struct {
	// Limit is the longest length allowed, in bytes.
	Limit int
	// ID is the id of the response that the line was, if it stood near the
	// start or the end of the line; else nil.
	ID json.RawMessage
}

// Error returns the limit that was passed.
func (e *LineError) Error() string {
	return fmt.Sprintf("message longer than %d bytes", e.Limit)
}

// ReaderOptions are the settings of a [Reader]. The zero value is usable.
type ReaderOptions struct {
	// Limit is the longest line accepted, in bytes without its line break;
	// [DefaultLimit] if zero.
	Limit int
	// Dropped, if set, is told of each line that is not JSON-RPC and why. The
	// line is valid until Dropped returns. Empty lines are not reported.
	Dropped func(line []byte, reason string)
}

// A Reader reads messages from a stream of lines. It is not safe for
// concurrent use.
type Reader struct {
	lines   *bufio.Reader
	limit   int
	dropped func([]byte, string)
	// batch holds what is left of a batch, each element checked to be JSON.
	batch []json.RawMessage
	// ended is the error that ended the stream.
	ended error
	// within reports that the rest of a line is still to be skipped.
	within bool
}

// NewReader returns a Reader on r.
func NewReader(r io.Reader, options ReaderOptions) *Reader {
	reader := &Reader{
		lines:   bufio.NewReaderSize(r, 32<<10),
		limit:   options.Limit,
		dropped: options.Dropped,
	}
	if reader.limit <= 0 {
		reader.limit = DefaultLimit
	}
	if reader.dropped == nil {
		reader.dropped = func([]byte, string) {}
	}
	return reader
}

// Read returns the next message. Its payloads belong to the caller. Lines
// that are not JSON-RPC are reported to Dropped and skipped; a batch, which
// MCP 2025-03-26 allowed, is returned message by message. A [*LineError] does
// not end the stream; any other error does: [io.EOF] at its end, else the
// stream's own.
func (r *Reader) Read() (Message, error) {
	for {
		if len(r.batch) > 0 {
			element := r.batch[0]
			r.batch = r.batch[1:]
			if m, ok := r.accept(arrival{text: element}); ok {
				return m, nil
			}
			continue
		}
		line, err := r.line()
		if err != nil {
			return Message{}, err
		}
		switch trimmed := bytes.TrimLeft(line.text, " \t\r\n"); {
		case len(trimmed) == 0:
		case trimmed[0] == '[':
			r.open(trimmed)
		default:
			if m, ok := r.accept(line); ok {
				return m, nil
			}
		}
	}
}

// accept parses a line, unless it has been, or drops it.
func (r *Reader) accept(line arrival) (Message, bool) {
	m, err := line.message, line.problem
	if !line.parsed {
		m, err = parse(line.text)
	}
	if err != nil {
		r.dropped(line.text, err.Error())
		return Message{}, false
	}
	return m, true
}

// open splits a batch, or drops the line.
func (r *Reader) open(line []byte) {
	var batch []json.RawMessage
	for element, err := range Elements(toValid(line)) {
		if err != nil {
			r.dropped(line, err.Error())
			return
		}
		batch = append(batch, element)
	}
	if len(batch) == 0 {
		r.dropped(line, "empty batch")
	}
	r.batch = batch
}

// line returns the next line in memory of its own. The last line of a stream
// need not have a line break.
func (r *Reader) line() (arrival, error) {
	if r.ended != nil {
		return arrival{}, r.ended
	}
	if r.within {
		r.within = false
		if _, err := r.skip(nil); err != nil {
			r.ended = err
			return arrival{}, err
		}
	}
	chunk, err := r.lines.ReadSlice('\n')
	if err == nil && len(chunk) <= r.limit+1 {
		return arrival{text: bytes.Clone(chunk[:len(chunk)-1])}, nil
	}
	long := arrival{from: r}
	long.take(chunk, err)
	err = long.finish() // first: it changes long
	return long, err
}

// An arrival is a line that arrives. A long one is parsed meanwhile: there is
// time for it while the peer writes what follows.
type arrival struct {
	from *Reader
	text []byte
	// over reports that nothing follows; err is why, unless the line is whole.
	over bool
	err  error
	// message and problem are what parse returns for the line, if parsed is set.
	message Message
	problem error
	parsed  bool
}

// finish waits for the whole line.
func (a *arrival) finish() error {
	s := scanner{data: a.text}
	s.more = func() bool {
		before := len(a.text)
		a.more()
		s.data = a.text
		return len(a.text) > before
	}
	a.message, a.problem = s.message()
	for !a.over {
		a.more()
	}
	// What does not start as a message may be a batch, or need to be cleaned.
	a.parsed = s.pos > 0 && utf8.Valid(a.text)
	return a.err
}

// more waits for what follows.
func (a *arrival) more() {
	if !a.over {
		a.take(a.from.lines.ReadSlice('\n'))
	}
}

// take adds a part of the line, and err that came with it.
func (a *arrival) take(part []byte, err error) {
	r := a.from
	if free := cap(a.text) - len(a.text); free < len(part) {
		// Twice as much, but not more than may come.
		a.text = slices.Grow(a.text, max(len(part), min(len(a.text), r.limit+1-len(a.text))))
	}
	a.text = append(a.text, part...)
	a.over = !errors.Is(err, bufio.ErrBufferFull)
	if err == nil {
		a.text = a.text[:len(a.text)-1]
	}
	switch {
	case len(a.text) > r.limit:
		a.over, a.err = true, r.discard(a.text, err)
	case !a.over || err == nil:
	case errors.Is(err, io.EOF) && len(a.text) > 0:
		r.ended = err
	default:
		r.ended, a.err = err, err
	}
}

// discard gives up a line of which line is the start, and err what came with
// it. If the start says which response it is, the rest is skipped later: who
// waits for the response has waited long enough.
func (r *Reader) discard(line []byte, err error) error {
	head := bytes.Clone(line[:min(len(line), ends)])
	tail := bytes.Clone(line[max(0, len(line)-ends):])
	if errors.Is(err, bufio.ErrBufferFull) {
		if id := responseID(head, nil); id != nil {
			r.within = true
			return &LineError{Limit: r.limit, ID: id}
		}
		tail, err = r.skip(tail)
	}
	if err != nil {
		r.ended = err
		if !errors.Is(err, io.EOF) {
			return err
		}
	}
	return &LineError{Limit: r.limit, ID: responseID(head, tail)}
}

// A line that is too long is skipped at no more than some 120 MB/s: who sends it
// waits, and not the others on the machine.
const (
	skipAtOnce = 128 << 10
	skipPause  = time.Millisecond
)

// skip reads up to the next line break and returns the end of tail and what it
// read.
func (r *Reader) skip(tail []byte) ([]byte, error) {
	pause := time.NewTimer(skipPause)
	defer pause.Stop()
	read := 0
	for {
		if read >= skipAtOnce {
			read = 0
			<-pause.C
			pause.Reset(skipPause)
		}
		chunk, err := r.lines.ReadSlice('\n')
		read += len(chunk)
		tail = append(tail, chunk...)
		tail = append(tail[:0], tail[max(0, len(tail)-ends):]...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return tail, err
		}
	}
}

// ResponseID returns the id of the response that a line was meant to be,
// though it is none, if the id stands near the start or the end of the line;
// else nil. A line that does not speak of JSON-RPC is not taken for one.
func ResponseID(line []byte) json.RawMessage {
	head, tail := line[:min(len(line), ends)], line[max(0, len(line)-ends):]
	const sign = `"jsonrpc"`
	if !bytes.Contains(head, []byte(sign)) && !bytes.Contains(tail, []byte(sign)) {
		return nil
	}
	return bytes.Clone(responseID(head, tail))
}

// responseID looks for the id of a response in the two ends of a line. Most
// encoders write it first; the TypeScript SDK writes it last.
func responseID(head, tail []byte) json.RawMessage {
	s := scanner{data: head}
	s.space()
	for open := byte('{'); s.take(open); open = ',' {
		key, value, ok := s.member(1)
		if !ok || s.pos == len(head) { // where it is cut off, a number may go on
			break
		}
		switch string(name(key)) {
		case "method":
			return nil
		case "id":
			return value
		}
	}
	// The last brace of the line closes the message, so a member before it
	// belongs to the message.
	tail, found := bytes.CutSuffix(bytes.TrimSpace(tail), []byte("}"))
	start := bytes.LastIndex(tail, []byte(`"id"`))
	if !found || start < 0 || bytes.Contains(tail, []byte(`"method"`)) {
		return nil
	}
	s = scanner{data: tail, pos: start}
	if _, value, ok := s.member(1); ok && s.pos == len(tail) && (value[0] == '"' || value[0]-'0' <= 9) {
		return value
	}
	return nil
}

// A Writer writes messages as lines, each with one call of the underlying
// Write; one with a large payload with three, so that it need not be copied.
// It may be used by several goroutines.
type Writer struct {
	mu     sync.Mutex
	w      io.Writer
	line   []byte
	broken error
}

// NewWriter returns a Writer on w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// A MessageError is a message that cannot be written because it is none, or
// has a raw member that is not JSON. Nothing was written, and the stream is
// whole.
type MessageError struct{ Err error }

// Error returns what is wrong with the message.
func (e *MessageError) Error() string { return "invalid message: " + e.Err.Error() }

// Unwrap returns what is wrong with the message.
func (e *MessageError) Unwrap() error { return e.Err }

// Write writes one message. An error means that the peer cannot have received
// the whole message. If it is not a [*MessageError] the stream is broken and
// every later Write returns it.
func (w *Writer) Write(m Message) error { return w.send(m, oneLine) }

// Pass is Write for params or a result that a [Reader] returned or an encoder
// of JSON made. They are not walked over once more, which takes as long as all
// else that is done to a large one.
func (w *Writer) Pass(m Message) error { return w.send(m, unbroken) }

func (w *Writer) send(m Message, checked check) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken != nil {
		return w.broken
	}
	head, body, err := m.split(w.line[:0], checked)
	if err != nil {
		return &MessageError{Err: err}
	}
	if len(body) < large {
		w.line = append(append(head, body...), '}', '\n')
		if cap(w.line) > 1<<20 {
			defer func() { w.line = nil }()
		}
		return w.put(w.line)
	}
	w.line = head
	if err := w.part(head); err != nil {
		return err
	}
	if err := w.part(body); err != nil {
		return err
	}
	return w.put([]byte("}\n"))
}

// large is the length of a payload, in bytes, whose copy costs more than a
// call of the underlying Write.
const large = 64 << 10

// put writes the end of a line.
func (w *Writer) put(end []byte) error {
	n, err := w.write(end)
	if n >= len(end)-1 {
		// All but the line break went out: a reader may take it as complete.
		return nil
	}
	return err
}

// part writes a part of a line that is not its end.
func (w *Writer) part(part []byte) error {
	_, err := w.write(part)
	return err
}

func (w *Writer) write(part []byte) (int, error) {
	n, err := w.w.Write(part)
	if err == nil && n < len(part) {
		err = io.ErrShortWrite
	}
	w.broken = err
	return n, err
}
