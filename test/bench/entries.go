package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/dockgate/dockgate/internal/tool"
)

// The servers that are called, by their names in the catalog.
const (
	// echoServer keeps running; resting stops as soon as it is idle, and coming
	// soon after; sized returns results of any size.
	echoServer = "echo"
	resting    = "resting"
	coming     = "coming"
	sized      = "sized"
)

const (
	demoImage  = "dockgate/demo:latest"
	sizedImage = "dockgate-test/bench:latest"
)

// An entry is a server of the benchmark's catalog.
type entry struct {
	name, image string
	// idle is how long it runs without a call; empty is the gateway's default.
	idle string
	// tools are how many tools it is said to have; zero are those that it has.
	tools int
}

// serverEntries returns as many servers as are asked for, the called ones among them.
func serverEntries(count int) []entry {
	entries := []entry{
		{name: echoServer, image: demoImage},
		{name: resting, image: demoImage, idle: "100ms"},
		{name: coming, image: demoImage, idle: "2s"},
		{name: sized, image: sizedImage},
	}
	for len(entries) < count {
		entries = append(entries, entry{name: fmt.Sprintf("server-%03d", len(entries)), image: demoImage})
	}
	return entries
}

// wideEntries returns servers that are never started, with many tools each.
func wideEntries(count, tools int) []entry {
	entries := make([]entry, count)
	for i := range entries {
		entries[i] = entry{name: fmt.Sprintf("wide-%03d", i), image: demoImage, tools: tools}
	}
	return entries
}

// writeCatalog writes the entries as a catalog in the native format.
func writeCatalog(dir string, entries []entry) (string, error) {
	var text strings.Builder
	text.WriteString("version: 1\n\nservers:\n")
	for _, e := range entries {
		fmt.Fprintf(&text, `  %s:
    title: The server %s
    description: "One of the servers of the benchmark, which does what the others do"
    keywords: [bench, %s]
    image: %s
    network: none
    limits: {memory: 64MB, pids: 64, tmp: 16MB}
`, e.name, e.name, e.name, e.image)
		if e.idle != "" {
			fmt.Fprintf(&text, "    timeouts: {idle: %s}\n", e.idle)
		}
	}
	file := filepath.Join(dir, "catalog.yaml")
	return file, os.WriteFile(file, []byte(text.String()), 0o600)
}

// wideTools returns definitions of the length that tools of public servers
// have: some 450 bytes each.
func wideTools(server string, count int) ([]tool.Definition, error) {
	property := func(kind, text string) map[string]any { return map[string]any{"type": kind, "description": text} }
	definitions := make([]tool.Definition, count)
	for i := range definitions {
		name := fmt.Sprintf("update_record_%03d", i)
		text, err := json.Marshal(map[string]any{
			"name":        name,
			"title":       "Update record " + name,
			"description": fmt.Sprintf("Updates one record of kind %d in %s and returns it as it is afterwards. Fails if the record was changed by somebody else since it was read.", i, server),
			"inputSchema": map[string]any{
				"type": "object",
				"properties": map[string]any{
					"id":      property("string", "The record's id, as the list returns it."),
					"version": property("integer", "The version that was read."),
					"fields":  map[string]any{"type": "object", "additionalProperties": true, "description": "What to change."},
					"notify":  property("boolean", "Tell its owner."),
				},
				"required": []string{"id", "fields"},
			},
			"annotations": map[string]any{"readOnlyHint": false, "idempotentHint": true},
		})
		if err != nil {
			return nil, err
		}
		definitions[i] = tool.Definition{Name: name, JSON: text}
	}
	return definitions, nil
}
