// Package relay lets many clients on standard input and output share one
// gateway: each starts a thin relay, which passes the lines of its client on
// to a gateway process over a unix socket.
//
// It decides which gateway a relay joins, and what a client sees when that
// gateway ends: an error for each call under way, and the next call works. It
// passes messages as the bytes they are.
package relay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/dockgate/dockgate/internal/jsonrpc"
)

// A Hello is the first line that a relay sends: whose client it is for.
type Hello struct {
	// Version is that of the program; a gateway takes its own only.
	Version string `json:"version"`
	// Dir is the client's working directory, Env its environment as NAME=VALUE.
	Dir string   `json:"dir"`
	Env []string `json:"env"`
	// Args are the command line.
	Args []string `json:"args"`
}

// A welcome is the answer to a Hello.
type welcome struct {
	// Problem says why the client is not served; empty if it is.
	Problem string `json:"problem,omitempty"`
	Hint    string `json:"hint,omitempty"`
	// Version says that the versions differ.
	Version bool `json:"version,omitempty"`
}

// A RefusedError is what the gateway says to a client that it does not serve.
type RefusedError struct {
	Problem string
	// Version says that the gateway is of another version.
	Version bool

	hint string
}

// Error returns the gateway's words.
func (e *RefusedError) Error() string { return e.Problem }

// Hint returns the gateway's words about what can be done.
func (e *RefusedError) Hint() string { return e.hint }

const (
	// maxMessage is the longest message, in bytes, and maxHello the longest
	// first line: environments can be long.
	maxMessage = 16 << 20
	maxHello   = 4 << 20
	// helloTime bounds the exchange of the first lines. It is long because the
	// gateway opens its parts in it.
	helloTime = time.Minute
)

// lastWords is how long is read of a gateway to which nothing can be written.
const lastWords = time.Second

// A Relay passes the messages of one client on.
type Relay struct {
	Hello Hello
	// Dial joins a gateway, and starts one if none is there.
	Dial func(context.Context) (net.Conn, error)
}

// Run relays until the client leaves or ctx ends, and closes in and out. If
// the first gateway refuses the client the error is a [*RefusedError], and
// nothing was read or closed.
func (r *Relay) Run(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := &passage{relay: r, out: jsonrpc.NewWriter(out), open: make(map[string]bool)}
	if err := p.join(ctx); err != nil {
		return err
	}
	said := make(chan jsonrpc.Message)
	ended := make(chan error, 1)
	// Closing standard input does not always end a read of it, so nothing
	// waits for this goroutine.
	go func() { ended <- p.listen(ctx, in, said) }()
	err := p.pass(ctx, said, ended)
	return errors.Join(err, p.leave(), unlessClosed(in.Close()), unlessClosed(out.Close()))
}

// A passage is the state of a Relay at work. It is for one goroutine, but for
// what the readers send it.
type passage struct {
	relay   *Relay
	out     *jsonrpc.Writer
	gateway *link // nil if there is none now

	// open are the ids of the client's requests without an answer.
	open map[string]bool
	// What a new gateway must be told for the client to go on: its initialize,
	// the notification after it, its log level, and what it has subscribed to.
	initialize, initialized, level *jsonrpc.Message
	subscribed                     map[string]jsonrpc.Message
	repeats                        int
}

// A link is the connection to one gateway.
type link struct {
	connection net.Conn
	to         *jsonrpc.Writer
	said       chan jsonrpc.Message
	gone       chan struct{}
}

// listen reads the client's messages.
func (p *passage) listen(ctx context.Context, in io.Reader, said chan<- jsonrpc.Message) error {
	reader := jsonrpc.NewReader(in, jsonrpc.ReaderOptions{Limit: maxMessage, Dropped: func(_ []byte, reason string) {
		p.refuse(json.RawMessage("null"), jsonrpc.CodeParseError, "not a JSON-RPC message: "+reason)
	}})
	for {
		m, err := reader.Read()
		var long *jsonrpc.LineError
		if errors.As(err, &long) {
			id := long.ID
			if id == nil {
				id = json.RawMessage("null")
			}
			p.refuse(id, jsonrpc.CodeInvalidRequest, long.Error())
			continue
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case said <- m:
		case <-ctx.Done():
			return nil
		}
	}
}

// refuse answers a request in place of a gateway.
func (p *passage) refuse(id json.RawMessage, code int64, reason string) {
	// If it breaks, the client has left, which its input says too.
	_ = p.out.Write(jsonrpc.Message{ID: id, Error: &jsonrpc.Error{Code: code, Message: reason}})
}

// pass relays until the client's input ends.
func (p *passage) pass(ctx context.Context, said <-chan jsonrpc.Message, ended <-chan error) error {
	for {
		var heard <-chan jsonrpc.Message
		var gone <-chan struct{}
		if p.gateway != nil {
			heard, gone = p.gateway.said, p.gateway.gone
		}
		select {
		case m := <-said:
			p.toGateway(ctx, m)
		case m := <-heard:
			if err := p.toClient(m); err != nil {
				return err
			}
		case <-gone:
			p.lost(p.gateway)
		case err := <-ended:
			return err
		case <-ctx.Done():
			return nil
		}
	}
}

// toGateway passes a message of the client on. If no gateway is there another
// is joined, and a request that none can take is answered with why.
func (p *passage) toGateway(ctx context.Context, m jsonrpc.Message) {
	p.remember(m)
	if p.gateway != nil {
		select {
		case <-p.gateway.gone:
			p.lost(p.gateway)
		default:
		}
	}
	if p.gateway != nil && p.send(m) {
		return
	}
	if m.Kind() != jsonrpc.Request {
		return // it is about something that has ended
	}
	if err := p.rejoin(ctx, m); err != nil {
		p.refuse(m.ID, jsonrpc.CodeInternalError, err.Error())
		return
	}
	if !p.send(m) {
		p.refuse(m.ID, jsonrpc.CodeInternalError, "the gateway ends as soon as it is used")
	}
}

// send reports whether the gateway got a message. If not it has ended before,
// and another can be sent the same.
func (p *passage) send(m jsonrpc.Message) bool {
	if err := p.gateway.to.Write(m); err != nil {
		p.lost(p.gateway)
		return false
	}
	if m.Kind() == jsonrpc.Request {
		p.open[string(m.ID)] = true
	}
	return true
}

// remember keeps what a new gateway must be told.
func (p *passage) remember(m jsonrpc.Message) {
	switch m.Method {
	case "initialize":
		p.initialize = &m
	case "notifications/initialized":
		p.initialized = &m
	case "logging/setLevel":
		p.level = &m
	case "resources/subscribe":
		if p.subscribed == nil {
			p.subscribed = make(map[string]jsonrpc.Message)
		}
		p.subscribed[string(jsonrpc.Lookup(m.Params, "uri"))] = m
	case "resources/unsubscribe":
		delete(p.subscribed, string(jsonrpc.Lookup(m.Params, "uri")))
	}
}

// toClient passes a message of the gateway on.
func (p *passage) toClient(m jsonrpc.Message) error {
	if m.Kind() == jsonrpc.Response {
		delete(p.open, string(m.ID))
		if isRepeat(m.ID) {
			return nil
		}
	}
	return p.out.Write(m)
}

// lost answers what was under way at a gateway that has ended.
func (p *passage) lost(l *link) {
	// A connection that cannot be written to may still bring what was sent.
	_ = l.connection.SetReadDeadline(time.Now().Add(lastWords))
	for m := range l.said { // what it said last
		if p.toClient(m) != nil {
			break
		}
	}
	_ = l.connection.Close()
	p.gateway = nil
	for id := range p.open {
		p.refuse(json.RawMessage(id), jsonrpc.CodeInternalError, "the gateway has ended while it worked on this; the next call starts it anew")
	}
	clear(p.open)
}

// leave ends the connection and waits for its reader.
func (p *passage) leave() error {
	if p.gateway == nil {
		return nil
	}
	err := p.gateway.connection.Close()
	for range p.gateway.said { // until the reader has ended
	}
	return unlessClosed(err)
}

// attempts are how many gateways are greeted that end meanwhile: one that was
// idle for long enough ends just when somebody comes.
const attempts = 3

// join connects to a gateway.
func (p *passage) join(ctx context.Context) error {
	for attempt := 1; ; attempt++ {
		connection, err := p.relay.Dial(ctx)
		if err != nil {
			return err
		}
		l, err := p.greet(connection)
		if err == nil {
			p.gateway = l
			return nil
		}
		err = errors.Join(err, unlessClosed(connection.Close()))
		var refused *RefusedError
		if attempt == attempts || errors.As(err, &refused) || ctx.Err() != nil {
			return err
		}
	}
}

// greet says hello and starts to read.
func (p *passage) greet(connection net.Conn) (*link, error) {
	if err := connection.SetDeadline(time.Now().Add(helloTime)); err != nil {
		return nil, err
	}
	if err := json.NewEncoder(connection).Encode(p.relay.Hello); err != nil {
		return nil, fmt.Errorf("greet the gateway: %w", err)
	}
	line, err := readLine(connection, maxHello)
	if err != nil {
		return nil, fmt.Errorf("greet the gateway: %w", err)
	}
	var answer welcome
	if err := json.Unmarshal(line, &answer); err != nil {
		return nil, fmt.Errorf("greet the gateway: %w", err)
	}
	if answer.Problem != "" {
		return nil, &RefusedError{Problem: answer.Problem, Version: answer.Version, hint: answer.Hint}
	}
	if err := connection.SetDeadline(time.Time{}); err != nil {
		return nil, err
	}
	l := &link{
		connection: connection, to: jsonrpc.NewWriter(connection),
		said: make(chan jsonrpc.Message, 16), gone: make(chan struct{}),
	}
	go l.listen()
	return l, nil
}

// listen reads what the gateway says until the connection ends.
func (l *link) listen() {
	defer close(l.said)
	defer close(l.gone)
	reader := jsonrpc.NewReader(l.connection, jsonrpc.ReaderOptions{})
	for {
		m, err := reader.Read()
		if err != nil {
			return
		}
		l.said <- m
	}
}

// repeatPrefix begins the ids of requests that a relay makes in place of its
// client.
const repeatPrefix = "dockgate.relay."

func isRepeat(id json.RawMessage) bool { return strings.HasPrefix(string(id), `"`+repeatPrefix) }

// rejoin joins another gateway, and brings it to where the last one was.
func (p *passage) rejoin(ctx context.Context, next jsonrpc.Message) error {
	if err := p.join(ctx); err != nil {
		return err
	}
	if p.initialize == nil || next.Method == "initialize" {
		return nil
	}
	l := p.gateway
	id, err := p.repeat(*p.initialize)
	for err == nil {
		m, ok := <-l.said
		if !ok {
			err = errors.New("the gateway has ended at once")
		}
		if ok && string(m.ID) == id {
			break
		}
	}
	if err == nil && p.initialized != nil {
		err = l.to.Write(*p.initialized)
	}
	if err == nil && p.level != nil {
		_, err = p.repeat(*p.level)
	}
	for _, m := range p.subscribed {
		if err == nil {
			_, err = p.repeat(m)
		}
	}
	if err != nil {
		p.lost(l)
		return fmt.Errorf("begin anew with the gateway: %w", err)
	}
	return nil
}

// repeat sends a request of the client again, under an id of ours.
func (p *passage) repeat(m jsonrpc.Message) (id string, err error) {
	p.repeats++
	id = `"` + repeatPrefix + strconv.Itoa(p.repeats) + `"`
	m.ID = json.RawMessage(id)
	return id, p.gateway.to.Write(m)
}

// readLine reads up to a line break, one byte after the other: what comes
// after it is for somebody else.
func readLine(r io.Reader, most int) ([]byte, error) {
	var line []byte
	var one [1]byte
	for len(line) < most {
		if _, err := io.ReadFull(r, one[:]); err != nil {
			return nil, err
		}
		if one[0] == '\n' {
			return line, nil
		}
		line = append(line, one[0])
	}
	return nil, fmt.Errorf("a first line of more than %d bytes", most)
}

func unlessClosed(err error) error {
	if errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe) {
		return nil
	}
	return err
}
