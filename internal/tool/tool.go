// Package tool identifies tools: which server a tool belongs to, what its
// definition was, and under which name a client sees it.
//
// Definitions are kept as the bytes the server sent. Nothing here interprets
// a schema.
package tool

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
)

// A Ref is a tool of a server, by the names the catalog and the server gave.
type Ref struct {
	Server string `json:"server"`
	Name   string `json:"name"`
}

// String returns "server/name".
func (r Ref) String() string { return r.Server + "/" + r.Name }

// A Definition is one entry of a tools/list result (MCP schema: Tool).
type Definition struct {
	Name string `json:"name"`
	// JSON is the whole entry as the server sent it, unknown fields included.
	JSON json.RawMessage `json:"json"`
}

// Digest returns "sha256:" and the hex digest of the definition in canonical
// form: members sorted, whitespace removed, numbers as they were written.
// A server that only reorders its members has not changed its tool.
func (d Definition) Digest() string {
	return "sha256:" + hex.EncodeToString(canonical(d.JSON))
}

func canonical(raw json.RawMessage) []byte {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	encoded := []byte(raw)
	if err := decoder.Decode(&value); err == nil {
		if sorted, err := json.Marshal(value); err == nil {
			encoded = sorted
		}
	}
	sum := sha256.Sum256(encoded)
	return sum[:]
}

// ParseDefinition reads the name out of one entry of a tools/list result and
// keeps the rest as it is. A definition without a name is an error.
func ParseDefinition(raw json.RawMessage) (Definition, error) {
	// A map, because decoding into a struct takes "NAME" for "name".
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return Definition{}, fmt.Errorf("tool definition: %w", err)
	}
	var name string
	if err := json.Unmarshal(members["name"], &name); err != nil || name == "" {
		return Definition{}, errors.New("tool definition without a name")
	}
	return Definition{Name: name, JSON: raw}, nil
}
