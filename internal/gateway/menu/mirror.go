package menu

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/tool"
)

// A mirrored parameter of a tool stands in a header too, for whoever is
// between a client and us and does not read bodies (MCP 2026-07-28:
// server/tools, "x-mcp-header").
type mirrored struct {
	path   []string
	header string
}

// Bounds of what a definition says of headers. What is beyond is no header.
const (
	maxMirrored    = 32
	maxMirrorDepth = 16
)

// mirroredIn returns the parameters of a tool that stand in headers.
func mirroredIn(definition json.RawMessage) []mirrored {
	if !bytes.Contains(definition, []byte(`"x-mcp-header"`)) {
		return nil
	}
	return mirroredBelow(nil, jsonrpc.Lookup(definition, "inputSchema"), nil)
}

func mirroredBelow(found []mirrored, schema json.RawMessage, path []string) []mirrored {
	if len(path) >= maxMirrorDepth {
		return found
	}
	for property, err := range jsonrpc.Members(jsonrpc.Lookup(schema, "properties")) {
		if err != nil {
			break
		}
		here := append(path[:len(path):len(path)], string(property.Name))
		var annotated struct {
			Type   string `json:"type"`
			Header string `json:"x-mcp-header"`
		}
		// One that is wrong is none: clients do not show its tool to a model.
		if json.Unmarshal(property.Value, &annotated) == nil && isToken(annotated.Header) && len(found) < maxMirrored {
			switch annotated.Type {
			case "string", "integer", "boolean":
				found = append(found, mirrored{path: here, header: "Mcp-Param-" + annotated.Header})
			}
		}
		found = mirroredBelow(found, property.Value, here)
	}
	return found
}

// isToken reports whether a text can be part of a header's name (RFC 9110, 5.6.2).
func isToken(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}

// Mirrors reports whether any tool has parameters that stand in headers.
func (m *Menu) Mirrors() bool { return len(m.mirrored) > 0 }

// Mirrored compares the arguments of a call with the headers that must repeat
// them. Values returns those of a header. The error says what differs (MCP
// 2026-07-28: basic/transports, "Server validation").
func (m *Menu) Mirrored(ref tool.Ref, arguments json.RawMessage, values func(header string) []string) error {
	for _, parameter := range m.mirrored[ref] {
		if err := parameter.check(arguments, values(parameter.header)); err != nil {
			return err
		}
	}
	return nil
}

// check compares an argument with the values of its header.
func (m mirrored) check(arguments json.RawMessage, values []string) error {
	argument := arguments
	for _, name := range m.path {
		argument = jsonrpc.Lookup(argument, name)
	}
	none := len(argument) == 0 || string(argument) == "null"
	what := strings.Join(m.path, ".")
	switch {
	case none && len(values) == 0:
		return nil
	case none:
		return fmt.Errorf("the header %s repeats the parameter %s, which is not there", m.header, what)
	case len(values) == 0:
		return fmt.Errorf("the header %s is missing: it must repeat the parameter %s", m.header, what)
	case len(values) > 1:
		return fmt.Errorf("the header %s is there more than once", m.header)
	}
	said, err := plainValue(values[0])
	if err != nil {
		return fmt.Errorf("the header %s: %w", m.header, err)
	}
	if !repeats(said, argument) {
		return fmt.Errorf("the header %s is not the parameter %s", m.header, what)
	}
	return nil
}

const base64Before, base64After = "=?base64?", "?="

// plainValue decodes the value of a header (MCP 2026-07-28: basic/transports,
// "Value encoding").
func plainValue(value string) (string, error) {
	if coded, ok := strings.CutPrefix(value, base64Before); ok {
		if coded, ok = strings.CutSuffix(coded, base64After); ok {
			plain, err := base64.StdEncoding.DecodeString(coded)
			if err != nil {
				return "", fmt.Errorf("not Base64: %w", err)
			}
			return string(plain), nil
		}
	}
	if at := strings.IndexFunc(value, func(r rune) bool { return r != '\t' && (r < ' ' || r > '~') }); at >= 0 {
		return "", fmt.Errorf("a character at %d that must be in Base64", at)
	}
	return value, nil
}

// maxSafe is the largest integer that every client can write as it is.
const maxSafe = 1<<53 - 1

// repeats reports whether a text is a string, an integer or a boolean. Integers
// are compared as numbers: 42.0 is 42.
func repeats(said string, argument json.RawMessage) bool {
	switch argument[0] {
	case '"':
		var text string
		return json.Unmarshal(argument, &text) == nil && text == said
	case 't', 'f':
		return said == string(argument)
	case '{', '[':
		return false
	}
	wanted, err := strconv.ParseFloat(string(argument), 64)
	got, errSaid := strconv.ParseFloat(said, 64)
	whole := wanted == math.Trunc(wanted) && math.Abs(wanted) <= maxSafe
	return err == nil && errSaid == nil && whole && wanted == got
}
