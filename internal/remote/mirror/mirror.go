// Package mirror decides which parts of a message a request to a remote server
// repeats in its headers: a server of the modern era refuses a call without them
// (MCP 2026-07-28, basic/transports/streamable-http).
//
// It refuses tools that ask for what no header can hold. It guarantees that
// what it learns from a server's lists is bounded, and that every value it
// writes is visible ASCII.
package mirror

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
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

// Parameters are those parameters of a server's tools whose values are sent as
// headers too (MCP 2026-07-28, server/tools, "x-mcp-header"). They are learned
// from the lists that pass. The zero value knows none; its methods may be called
// at the same time.
type Parameters struct {
	mu    sync.Mutex
	tools map[string][]mirrored
}

// A mirrored parameter is sent in the header Mcp-Param-NAME.
type mirrored struct {
	path []string
	name string
}

// Learn takes in a result that may be a list of tools.
func (p *Parameters) Learn(result json.RawMessage) {
	var list struct {
		Tools []json.RawMessage `json:"tools"`
	}
	if json.Unmarshal(result, &list) != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, raw := range list.Tools {
		name, found, err := mirroredIn(raw)
		if err != nil || len(found) == 0 {
			delete(p.tools, name)
			continue
		}
		if p.tools == nil {
			p.tools = make(map[string][]mirrored)
		}
		if len(p.tools) < maxMirroring && len(found) <= maxMirrored {
			p.tools[name] = found
		}
	}
}

// Judge refuses a tool whose parameters cannot be sent as it says: a client
// must leave it out (MCP 2026-07-28, server/tools, "x-mcp-header").
func Judge(tool json.RawMessage) error {
	name, _, err := mirroredIn(tool)
	if err != nil {
		return fmt.Errorf("tool %q: %w", name, err)
	}
	return nil
}

// mirroredIn returns the name of a tool and the parameters that its calls
// mirror.
func mirroredIn(tool json.RawMessage) (name string, found []mirrored, err error) {
	var declared struct {
		Name   string          `json:"name"`
		Schema json.RawMessage `json:"inputSchema"`
	}
	_ = json.Unmarshal(tool, &declared) // what is no tool is for others to say
	found, err = mirroredBelow(declared.Schema, nil)
	seen := make(map[string]bool)
	for _, parameter := range found {
		folded := strings.ToLower(parameter.name)
		if seen[folded] && err == nil {
			err = fmt.Errorf("x-mcp-header %q twice", parameter.name)
		}
		seen[folded] = true
	}
	return declared.Name, found, err
}

func mirroredBelow(schema json.RawMessage, path []string) ([]mirrored, error) {
	var object struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if len(path) < maxDepth {
		_ = json.Unmarshal(schema, &object) // what is no object has no parameters
	}
	var found []mirrored
	for _, name := range slices.Sorted(maps.Keys(object.Properties)) {
		property := object.Properties[name]
		here := append(path[:len(path):len(path)], name)
		own, err := headerOf(property)
		if err != nil {
			return nil, fmt.Errorf("parameter %s: %w", strings.Join(here, "."), err)
		}
		if own != "" {
			found = append(found, mirrored{path: here, name: own})
		}
		below, err := mirroredBelow(property, here)
		if err != nil {
			return nil, err
		}
		found = append(found, below...)
	}
	return found, nil
}

// headerOf returns the header that a property's value is sent in, or "".
func headerOf(property json.RawMessage) (string, error) {
	var annotated struct {
		Type   json.RawMessage `json:"type"`
		Header json.RawMessage `json:"x-mcp-header"`
	}
	_ = json.Unmarshal(property, &annotated) // true is a schema, too
	if annotated.Header == nil {
		return "", nil
	}
	var header string
	if json.Unmarshal(annotated.Header, &header) != nil || !IsToken(header) {
		return "", fmt.Errorf("x-mcp-header %.100s is not a name of a header", annotated.Header)
	}
	if !mirrors(annotated.Type) {
		return "", errors.New("x-mcp-header on what is not a string, an integer or a boolean")
	}
	return header, nil
}

// mirrors reports whether values of a type, or of types, are sent as headers;
// one that is null is not there.
func mirrors(declared json.RawMessage) bool {
	var kinds []string
	if json.Unmarshal(declared, &kinds) != nil {
		kinds = []string{""}
		if json.Unmarshal(declared, &kinds[0]) != nil {
			return false
		}
	}
	kinds = slices.DeleteFunc(kinds, func(kind string) bool { return kind == "null" })
	return len(kinds) > 0 && !slices.ContainsFunc(kinds, func(kind string) bool {
		return kind != "string" && kind != "integer" && kind != "boolean"
	})
}

// IsToken reports whether a text can be part of a header's name (RFC 9110, 5.6.2).
func IsToken(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}

// Header returns the headers that a call of a tool needs, or nil.
func (p *Parameters) Header(params json.RawMessage) http.Header {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.tools) == 0 {
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
	for _, parameter := range p.tools[call.Name] {
		if value, ok := primitive(lookup(call.Arguments, parameter.path)); ok {
			filled.Set("Mcp-Param-"+parameter.name, Text(value))
		}
	}
	return filled
}

// lookup follows a path into an object, and returns nil if it leads nowhere.
func lookup(value json.RawMessage, path []string) json.RawMessage {
	for _, name := range path {
		value = jsonrpc.Lookup(value, name)
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

// Text writes a value as a header can hold it: as it is if it is visible ASCII,
// else in Base64 between marks (MCP 2026-07-28, basic/transports/streamable-http,
// "Value encoding").
func Text(value string) string {
	odd := strings.TrimSpace(value) != value || strings.HasPrefix(value, "=?base64?") ||
		strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' })
	if !odd {
		return value
	}
	return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(value)) + "?="
}
