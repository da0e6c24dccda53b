// Package era translates between the two generations of the MCP protocol: the
// one with sessions, up to 2025-11-25, and the one without, from 2026-07-28 on.
// A gateway meets clients and servers of both.
//
// It decides which members of a message belong to one generation only, what a
// client can be asked, and what a person has to see of a server's question. It
// refuses what the client has not declared, and addresses that are not of the
// web. Everything else passes as the bytes it is.
package era

import (
	"encoding/json"

	"github.com/dockgate/dockgate/internal/jsonrpc"
)

// Modern is the first version of the generation without sessions, and Legacy
// the last of the one before.
const (
	Modern = "2026-07-28"
	Legacy = "2025-11-25"
)

// IsModern reports whether a version is of the generation without sessions.
func IsModern(version string) bool { return version >= Modern }

// Keys of _meta that are valid for one hop (MCP 2026-07-28, basic, "_meta").
const (
	MetaVersion      = "io.modelcontextprotocol/protocolVersion"
	MetaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	MetaClient       = "io.modelcontextprotocol/clientInfo"
	MetaLogLevel     = "io.modelcontextprotocol/logLevel"
	MetaSubscription = "io.modelcontextprotocol/subscriptionId"
	MetaProgress     = "progressToken"
	metaServer       = "io.modelcontextprotocol/serverInfo"
)

// Meta returns a member of the _meta of params or of a result, or nil.
func Meta(object json.RawMessage, key string) json.RawMessage {
	return jsonrpc.Lookup(jsonrpc.Lookup(object, "_meta"), key)
}

// WithMeta returns params or a result with a member of its _meta set.
func WithMeta(object json.RawMessage, key string, value json.RawMessage) (json.RawMessage, error) {
	if len(object) == 0 {
		object = json.RawMessage("{}")
	}
	meta := jsonrpc.Lookup(object, "_meta")
	if len(meta) == 0 || meta[0] != '{' {
		meta = json.RawMessage("{}")
	}
	meta, err := jsonrpc.With(meta, key, value)
	if err != nil {
		return nil, err
	}
	return jsonrpc.With(object, "_meta", meta)
}

// without returns object without some of its members, and every other byte as
// it was written.
func without(object json.RawMessage, drop func(jsonrpc.Member) bool) (json.RawMessage, error) {
	kept := make([]byte, 1, len(object))
	kept[0] = '{'
	dropped := false
	for m, err := range jsonrpc.Members(object) {
		if err != nil {
			return nil, err
		}
		if drop(m) {
			dropped = true
			continue
		}
		if len(kept) > 1 {
			kept = append(kept, ',')
		}
		kept = append(kept, m.Raw...)
	}
	if !dropped {
		return object, nil
	}
	return append(kept, '}'), nil
}

// named matches members by their names.
func named(names ...string) func(jsonrpc.Member) bool {
	return func(m jsonrpc.Member) bool {
		for _, name := range names {
			if string(m.Name) == name {
				return true
			}
		}
		return false
	}
}

// severities are the log levels of MCP, the least first (2025-11-25,
// server/utilities/logging).
func severities() [8]string {
	return [...]string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
}

// Severity returns how grave a log level is, from 0 for debug on, or -1 if it
// is none.
func Severity(level string) int {
	for severity, name := range severities() {
		if name == level {
			return severity
		}
	}
	return -1
}

// LogLevel returns the level of the log messages that a modern client wants
// with a request; empty for none.
func LogLevel(params json.RawMessage) string {
	return text(jsonrpc.Lookup(params, "_meta"), MetaLogLevel)
}
