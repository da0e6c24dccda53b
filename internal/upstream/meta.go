package upstream

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/dockgate/dockgate/internal/era"
	"github.com/dockgate/dockgate/internal/jsonrpc"
)

// isHop reports whether a key of a caller's _meta must not reach the server.
// The log level that a caller wants is for a modern server to know.
func isHop(spoken Era, key []byte) bool {
	switch string(key) {
	case era.MetaVersion, era.MetaCapabilities, era.MetaClient, era.MetaSubscription, era.MetaProgress:
		return true
	case era.MetaLogLevel:
		return spoken != Modern
	}
	return false
}

// introduce prepares what is said to the server about this client.
func (s *Session) introduce(client Implementation) error {
	var err error
	if s.client, err = json.Marshal(client); err != nil {
		return fmt.Errorf("client: %w", err)
	}
	for _, err := range jsonrpc.Members(s.declared) {
		if err != nil {
			return fmt.Errorf("client capabilities: %w", err)
		}
	}
	s.hopHead = fmt.Appendf(nil, "%q:%q,%q:", era.MetaVersion, era.Modern, era.MetaCapabilities)
	s.hopTail = fmt.Appendf(nil, ",%q:%s", era.MetaClient, s.client)
	return nil
}

// capabilitiesIn returns the client capabilities in a _meta, or else those given.
func capabilitiesIn(meta, otherwise json.RawMessage) json.RawMessage {
	if own := jsonrpc.Lookup(meta, era.MetaCapabilities); len(own) > 0 && own[0] == '{' {
		return own
	}
	return otherwise
}

// own returns our hop keys. Token zero asks for no progress.
func (s *Session) own(spoken Era, capabilities json.RawMessage, token int64) []byte {
	var own []byte
	if spoken == Modern {
		own = slices.Concat(s.hopHead, capabilities, s.hopTail)
	}
	if token != 0 {
		if len(own) > 0 {
			own = append(own, ',')
		}
		own = fmt.Appendf(own, "%q:%d", era.MetaProgress, token)
	}
	return own
}

// compose returns params for the server: with our hop keys in _meta instead
// of the caller's, but for the capabilities that a modern server is told of,
// and everything else as it was written. Token zero asks for no progress.
func (s *Session) compose(spoken Era, params, capabilities json.RawMessage, token int64) (json.RawMessage, error) {
	if len(params) == 0 {
		own := s.own(spoken, capabilities, token)
		if len(own) == 0 {
			return nil, nil
		}
		params = json.RawMessage("{}")
	}
	var meta json.RawMessage
	metas, members := 0, 0
	for m, err := range jsonrpc.Members(params) {
		if err != nil {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "params: " + err.Error()}
		}
		members++
		if string(m.Name) == "_meta" {
			meta = m.Value
			metas++
		}
	}
	if spoken == Modern && meta != nil {
		capabilities = capabilitiesIn(meta, capabilities)
	}
	own := s.own(spoken, capabilities, token)
	composed := make([]byte, 0, len(params)+len(own)+16)
	if metas == 0 {
		if len(own) == 0 {
			return params, nil
		}
		end := bytes.LastIndexByte(params, '}')
		composed = append(composed, params[:end]...)
		if members > 0 {
			composed = append(composed, ',')
		}
		composed = append(composed, `"_meta":{`...)
		composed = append(composed, own...)
		return append(composed, '}', '}'), nil
	}
	// Of repeated members the last counts, as for decoders of JSON.
	composed = append(composed, '{')
	for m, err := range jsonrpc.Members(params) {
		if err != nil {
			return nil, err
		}
		if string(m.Name) == "_meta" {
			if metas--; metas > 0 {
				continue
			}
		}
		if len(composed) > 1 {
			composed = append(composed, ',')
		}
		if string(m.Name) != "_meta" {
			composed = append(composed, m.Raw...)
			continue
		}
		composed = appendMeta(append(composed, `"_meta":`...), spoken, meta, own)
	}
	return append(composed, '}'), nil
}

// appendMeta appends a _meta object: the caller's members that may pass, then
// ours. A _meta that is not an object has none.
func appendMeta(composed []byte, spoken Era, meta json.RawMessage, own []byte) []byte {
	composed = append(composed, '{')
	start := len(composed)
	for m, err := range jsonrpc.Members(meta) {
		if err != nil {
			break
		}
		if isHop(spoken, m.Name) {
			continue
		}
		if len(composed) > start {
			composed = append(composed, ',')
		}
		composed = append(composed, m.Raw...)
	}
	if len(composed) > start && len(own) > 0 {
		composed = append(composed, ',')
	}
	return append(append(composed, own...), '}')
}
