package remote

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/dockgate/dockgate/internal/jsonrpc"
)

// Bounds of what a server's tools say of headers. What is beyond is left out,
// and the server then refuses the call.
const (
	maxMirroring = 10000 // tools
	maxMirrored  = 32    // parameters of one
	maxDepth     = 16
)

// A mirror knows which parameters of which tools are sent as headers too: a
// server of the modern era refuses a call without them (MCP 2026-07-28,
// server/tools, "x-mcp-header"). It learns them from the lists that pass.
type mirror struct {
	mu    sync.Mutex
	tools map[string][]mirrored
}

// A mirrored parameter is sent in the header Mcp-Param-NAME.
type mirrored struct {
	path []string
	name string
}

// learn takes in a result that may be a list of tools.
func (m *mirror) learn(result json.RawMessage) {
	var list struct {
		Tools []struct {
			Name   string          `json:"name"`
			Schema json.RawMessage `json:"inputSchema"`
		} `json:"tools"`
	}
	if json.Unmarshal(result, &list) != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range list.Tools {
		found := mirroredIn(t.Schema, nil)
		if len(found) == 0 {
			delete(m.tools, t.Name)
			continue
		}
		if m.tools == nil {
			m.tools = make(map[string][]mirrored)
		}
		if len(m.tools) < maxMirroring && len(found) <= maxMirrored {
			m.tools[t.Name] = found
		}
	}
}

func mirroredIn(schema json.RawMessage, path []string) []mirrored {
	var object struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if len(path) >= maxDepth || json.Unmarshal(schema, &object) != nil {
		return nil
	}
	var found []mirrored
	for name, property := range object.Properties {
		here := append(path[:len(path):len(path)], name)
		var annotated struct {
			Header string `json:"x-mcp-header"`
		}
		if json.Unmarshal(property, &annotated) == nil && isToken(annotated.Header) {
			found = append(found, mirrored{path: here, name: annotated.Header})
		}
		found = append(found, mirroredIn(property, here)...)
	}
	return found
}

// isToken reports whether a text can be part of a header's name (RFC 9110, 5.6.2).
func isToken(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}

// headers returns the headers that a call of a tool needs.
func (m *mirror) headers(params json.RawMessage) http.Header {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.tools) == 0 {
		return nil
	}
	var call struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if json.Unmarshal(params, &call) != nil {
		return nil
	}
	filled := make(http.Header)
	for _, parameter := range m.tools[call.Name] {
		if value, ok := primitive(lookup(call.Arguments, parameter.path)); ok {
			filled.Set("Mcp-Param-"+parameter.name, plainName(value))
		}
	}
	return filled
}

// lookup follows a path into an object, and returns nil if it leads nowhere.
func lookup(value json.RawMessage, path []string) json.RawMessage {
	for _, name := range path {
		var next json.RawMessage
		for member, err := range jsonrpc.Members(value) {
			if err != nil {
				return nil
			}
			if string(member.Name) == name {
				next = member.Value
			}
		}
		if next == nil {
			return nil
		}
		value = next
	}
	return value
}

// primitive writes a string, an integer or a boolean as text.
func primitive(value json.RawMessage) (string, bool) {
	if len(value) == 0 {
		return "", false
	}
	switch value[0] {
	case '"':
		var text string
		err := json.Unmarshal(value, &text)
		return text, err == nil
	case 't', 'f':
		return string(value), true
	case '{', '[', 'n':
		return "", false
	default:
		n, ok := jsonrpc.Integer(value)
		return strconv.FormatInt(n, 10), ok
	}
}
