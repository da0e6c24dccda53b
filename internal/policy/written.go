package policy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A Setting is one value of a configuration.
type Setting struct {
	// Key is its path, such as "limits.memory", with our name of a quota that
	// has another in some files.
	Key string `json:"key"`
	// Value is as it is written; of a part with rules of its own, how much of it
	// there is.
	Value any `json:"value"`
	// From is "built-in", a flag, or "FILE:LINE".
	From string `json:"from"`
}

// parts are the keys below which a configuration has rules of its own. They
// are shown by their size, because they are long, or may hold what only the
// user should read.
func parts() []string {
	return []string{"install.env", "discovery.toolRules", "discovery.servers", "discovery.sources"}
}

// maxDots is how many dots a key has at most: "roles.guest.quotas.max_running".
const maxDots = 3

// maxWritten bounds how many nodes are read: aliases can make many of a small
// file.
const maxWritten = 10_000

// Written is what stands in a file, in its order.
type Written []Setting

// readWritten returns what stands in a file, by its keys.
func readWritten(path string, root *yaml.Node) Written {
	w := writtenReader{path: path}
	if root != nil {
		w.read("", root, root.Line)
	}
	return w.settings
}

type writtenReader struct {
	path     string
	settings Written
	nodes    int
}

func (w *writtenReader) read(key string, n *yaml.Node, line int) {
	n = resolved(n)
	if w.nodes++; w.nodes > maxWritten || n.Kind == 0 || n.ShortTag() == "!!null" {
		return
	}
	if n.Kind == yaml.MappingNode && !slices.Contains(parts(), key) && strings.Count(key, ".") < maxDots {
		for i := 0; i+1 < len(n.Content); i += 2 {
			name := n.Content[i].Value
			if key != "" {
				name = key + "." + name
			}
			w.read(name, n.Content[i+1], n.Content[i].Line)
		}
		return
	}
	w.settings = append(w.settings, Setting{Key: ourName(key), Value: valueOf(key, n), From: fmt.Sprintf("%s:%d", w.path, line)})
}

func valueOf(key string, n *yaml.Node) any {
	if slices.Contains(parts(), key) {
		size := len(n.Content)
		if n.Kind == yaml.MappingNode {
			size /= 2
		}
		return size
	}
	if n.Kind == yaml.SequenceNode {
		texts := []string{}
		for _, item := range n.Content {
			texts = append(texts, textOf(resolved(item)))
		}
		return texts
	}
	var value any
	if n.Kind != yaml.ScalarNode || n.Decode(&value) != nil {
		return textOf(n)
	}
	return value
}

// textOf is a value on one line, as JSON if it has parts.
func textOf(n *yaml.Node) string {
	if n.Kind == yaml.ScalarNode {
		return n.Value
	}
	var value any
	if n.Decode(&value) != nil {
		return ""
	}
	text, err := json.Marshal(value)
	if err != nil { // a key in it is no text
		return ""
	}
	return string(text)
}

// Place returns where a key, or else the part that it is in, was written.
func (w Written) Place(key, otherwise string) string {
	for ; key != ""; key = key[:max(0, strings.LastIndexByte(key, '.'))] {
		for _, s := range w {
			if s.Key == key || strings.HasPrefix(s.Key, key+".") {
				return s.From
			}
		}
	}
	return otherwise
}
