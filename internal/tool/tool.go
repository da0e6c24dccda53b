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
	"io"
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
// form: members sorted, whitespace removed, numbers as they were written. A
// server that only reorders its members has not changed its tool. A definition
// that names a member twice counts as it was written, because readers differ
// in which of the two they take.
func (d Definition) Digest() string {
	encoded := []byte(d.JSON)
	if value, err := parse(d.JSON); err == nil {
		if sorted, err := json.Marshal(value); err == nil {
			encoded = sorted
		}
	}
	sum := sha256.Sum256(encoded)
	return "sha256:" + hex.EncodeToString(sum[:])
}

var errRepeated = errors.New("repeated member")

// parse decodes a value and refuses objects that name a member twice.
func parse(raw json.RawMessage) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	value, err := parseNext(decoder)
	if err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one value")
	}
	return value, nil
}

func parseNext(decoder *json.Decoder) (any, error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		object := make(map[string]any)
		for decoder.More() {
			name, err := decoder.Token()
			if err != nil {
				return nil, err
			}
			if _, repeated := object[name.(string)]; repeated {
				return nil, errRepeated
			}
			if object[name.(string)], err = parseNext(decoder); err != nil {
				return nil, err
			}
		}
		_, err = decoder.Token()
		return object, err
	case json.Delim('['):
		array := []any{}
		for decoder.More() {
			element, err := parseNext(decoder)
			if err != nil {
				return nil, err
			}
			array = append(array, element)
		}
		_, err = decoder.Token()
		return array, err
	default:
		return token, nil
	}
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
