package era

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/dockgate/dockgate/internal/jsonrpc"
)

// The methods whose results differ between the generations by more than their
// resultType.
const (
	methodCall = "tools/call"
	methodRead = "resources/read"
)

const (
	resultType    = "resultType"
	complete      = `"complete"`
	inputRequired = `"input_required"`
	scopePrivate  = `"private"`
)

// ForLegacy returns the result of a modern server for a client with sessions:
// without the members that such a client does not know, and without structured
// content of a kind that it does not take (MCP 2025-11-25, schema).
func ForLegacy(method string, result json.RawMessage) (json.RawMessage, error) {
	for m, err := range jsonrpc.Members(result) {
		if err != nil {
			return nil, err
		}
		if string(m.Name) != "_meta" || m.Value[0] != '{' {
			continue
		}
		meta, err := without(m.Value, named(metaServer))
		if err != nil {
			return nil, err
		}
		if len(meta) != len(m.Value) {
			if result, err = jsonrpc.With(result, "_meta", meta); err != nil {
				return nil, err
			}
		}
		break
	}
	return without(result, func(m jsonrpc.Member) bool {
		switch string(m.Name) {
		case resultType:
			return true
		case "ttlMs", "cacheScope":
			return method == methodRead
		case "structuredContent":
			return method == methodCall && m.Value[0] != '{'
		case "_meta":
			return string(m.Value) == "{}"
		}
		return false
	})
}

// ForModern returns the result of a server, or of our own, for a client
// without sessions: with what must be on it, where it is not. Server is the
// Implementation that answers. It reports whether the result asks the client
// for input, and is none yet.
func ForModern(method string, result, server json.RawMessage) (whole json.RawMessage, asks bool, err error) {
	var kind, meta, ttl, scope json.RawMessage
	empty := true
	for m, err := range jsonrpc.Members(result) {
		if err != nil {
			return nil, false, err
		}
		empty = false
		switch string(m.Name) {
		case resultType:
			kind = m.Value
		case "_meta":
			meta = m.Value
		case "ttlMs":
			ttl = m.Value
		case "cacheScope":
			scope = m.Value
		}
	}
	if string(kind) == inputRequired {
		return result, true, nil
	}
	var more []byte
	add := func(name string, value []byte) { more = fmt.Appendf(more, `,"%s":%s`, name, value) }
	if kind == nil {
		add(resultType, []byte(complete))
	}
	if method == methodRead && ttl == nil {
		add("ttlMs", []byte("0"))
	}
	switch {
	case method != methodRead:
	case scope == nil:
		add("cacheScope", []byte(scopePrivate))
	case string(scope) != scopePrivate:
		// Who may read is decided for each caller: others must not get it from a cache.
		if result, err = jsonrpc.With(result, "cacheScope", []byte(scopePrivate)); err != nil {
			return nil, false, err
		}
	}
	switch {
	case meta == nil:
		add("_meta", fmt.Appendf(nil, `{"%s":%s}`, metaServer, server))
	case meta[0] == '{' && jsonrpc.Lookup(meta, metaServer) == nil:
		if result, err = WithMeta(result, metaServer, server); err != nil {
			return nil, false, err
		}
	}
	if len(more) == 0 {
		return result, false, nil
	}
	if empty {
		more = more[1:]
	}
	end := bytes.LastIndexByte(result, '}')
	return slices.Concat(result[:end], more, []byte("}")), false, nil
}
