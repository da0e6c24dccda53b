package upstream

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/dockgate/dockgate/internal/jsonrpc"
)

// accept answers a request of the server. Only ping is answered here.
func (s *Session) accept(ctx context.Context, m jsonrpc.Message) {
	switch {
	case m.Method == "ping":
		s.reply(m.ID, json.RawMessage("{}"), nil)
		return
	case s.serve == nil:
		s.reply(m.ID, nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "method not found: " + m.Method})
		return
	}
	key := string(m.ID)
	s.mu.Lock()
	_, twice := s.serving[key]
	full := len(s.serving) >= maxServing
	if !twice && !full {
		ctx, s.serving[key] = context.WithCancel(ctx)
	}
	s.mu.Unlock()
	switch {
	case twice:
		s.reply(m.ID, nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "id is in use"})
	case full:
		s.reply(m.ID, nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "too many requests in progress"})
	default:
		s.wg.Go(func() {
			result, err := s.serve(ctx, m.Method, m.Params)
			cancelled := ctx.Err() != nil
			s.mu.Lock()
			s.serving[key]()
			delete(s.serving, key)
			s.mu.Unlock()
			if !cancelled {
				s.reply(m.ID, result, err)
			}
		})
	}
}

// revoke ends the context of a request that the server gave up. Its answer is
// not sent.
func (s *Session) revoke(params json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel, ok := s.serving[string(jsonrpc.Lookup(params, "requestId"))]; ok {
		cancel()
	}
}

// reply queues an answer to a request of the server.
func (s *Session) reply(id, result json.RawMessage, err error) {
	m := jsonrpc.Message{ID: id, Result: result}
	if err != nil {
		m.Result = nil
		if !errors.As(err, &m.Error) {
			s.logger.Debug("request of the server not answered", "err", err)
			m.Error = errInternal()
		}
	} else if result == nil {
		m.Result = json.RawMessage("{}")
	}
	s.out.push(&item{message: m})
}
