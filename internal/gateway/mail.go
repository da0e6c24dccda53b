package gateway

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dockgate/dockgate/internal/gateway/wire"
)

// Bounds of what waits for a client that does not read, and how long an answer
// waits for what belongs before it.
const (
	maxLetters     = 256
	maxLetterBytes = 1 << 20
	letterBarrier  = 100 * time.Millisecond
)

// A letter is a notification on its way to a client.
type letter struct {
	ctx    context.Context //nolint:containedctx // it says which stream the letter goes on
	to     *mcp.ServerSession
	method string
	params json.RawMessage
}

// A mailbox sends notifications to one client in order, without making who
// posts them wait for it. The zero value is empty.
type mailbox struct {
	mu      sync.Mutex
	letters []letter
	bytes   int
	sending bool
	closed  bool
	empty   chan struct{} // closed when all is sent; nil if nothing waits
}

// post queues a letter, or drops it if too many wait, and reports whether it
// did. Run starts a function in a goroutine that somebody waits for.
func (m *mailbox) post(l letter, run func(func()), failed func(error)) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || len(m.letters) >= maxLetters || m.bytes+len(l.params) > maxLetterBytes && len(m.letters) > 0 {
		return false
	}
	m.letters = append(m.letters, l)
	m.bytes += len(l.params)
	if !m.sending {
		m.sending, m.empty = true, make(chan struct{})
		run(func() { m.send(failed) })
	}
	return true
}

// close takes no more letters.
func (m *mailbox) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
}

func (m *mailbox) send(failed func(error)) {
	for {
		m.mu.Lock()
		if len(m.letters) == 0 {
			m.sending, m.letters = false, nil
			close(m.empty)
			m.empty = nil
			m.mu.Unlock()
			return
		}
		l := m.letters[0]
		m.letters = m.letters[1:]
		m.bytes -= len(l.params)
		m.mu.Unlock()
		if err := wire.Notify(l.ctx, l.to, l.method, l.params); err != nil {
			failed(err)
		}
	}
}

// flush waits until what was posted has been sent, but not for long.
func (m *mailbox) flush(ctx context.Context) {
	m.mu.Lock()
	empty := m.empty
	m.mu.Unlock()
	if empty == nil {
		return
	}
	timer := time.NewTimer(letterBarrier)
	defer timer.Stop()
	select {
	case <-empty:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// post sends a notification to a session's client, on the stream of the
// request that ctx is of, if it is of one.
func (g *Gateway) post(ctx context.Context, s *session, to *mcp.ServerSession, method string, params json.RawMessage) {
	posted := s.mail.post(letter{ctx: ctx, to: to, method: method, params: params}, s.calls.Go, func(err error) {
		g.Logger.DebugContext(ctx, "notification not delivered", "session", s.id, "err", err)
	})
	if !posted {
		g.Logger.DebugContext(ctx, "notification dropped, its client does not read or has left", "session", s.id)
	}
}
