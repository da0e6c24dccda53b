package ranking

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/dockgate/dockgate/internal/search"
)

type query struct {
	Query  string     `json:"query"`
	Kind   string     `json:"kind"`
	Groups [][]string `json:"groups"`
}

type line struct {
	ID          string          `json:"id"`
	Server      string          `json:"server"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
}

func readLines[V any](path string) ([]V, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all []V
	number := 0
	for raw := range bytes.Lines(text) {
		number++
		if len(bytes.TrimSpace(raw)) == 0 {
			continue
		}
		var value V
		if err := json.Unmarshal(raw, &value); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, number, err)
		}
		all = append(all, value)
	}
	return all, nil
}

// readCorpus returns the servers of a corpus or a catalog, and the ids of each
// tool by server and name: a corpus may have a tool twice.
func readCorpus(path string) ([]search.Server, map[[2]string][]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	ids := make(map[[2]string][]string)
	if trimmed := bytes.TrimSpace(text); len(trimmed) == 0 || trimmed[0] != '{' {
		servers, err := readCatalog(text)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", path, err)
		}
		for _, s := range servers {
			for _, t := range s.Tools {
				ids[[2]string{s.Name, t.Name}] = []string{s.Name + "/" + t.Name}
			}
		}
		return servers, ids, nil
	}
	lines, err := readLines[line](path)
	if err != nil {
		return nil, nil, err
	}
	var servers []search.Server
	at := make(map[string]int)
	for _, l := range lines {
		i, known := at[l.Server]
		if !known {
			i = len(servers)
			at[l.Server] = i
			servers = append(servers, search.Server{Name: l.Server})
		}
		servers[i].Tools = append(servers[i].Tools, search.Tool{
			Name: l.Name, Description: l.Description, Parameters: search.ParametersOf(l.Schema),
		})
		key := [2]string{l.Server, l.Name}
		ids[key] = append(ids[key], l.ID)
	}
	return servers, ids, nil
}

// readCatalog reads Docker's compiled catalog format, as far as it says what a
// server is for.
func readCatalog(text []byte) ([]search.Server, error) {
	var catalog struct {
		Registry map[string]struct {
			Title       string `yaml:"title"`
			Description string `yaml:"description"`
			Tools       []struct {
				Name        string `yaml:"name"`
				Description string `yaml:"description"`
			} `yaml:"tools"`
			Metadata struct {
				Category string   `yaml:"category"`
				Tags     []string `yaml:"tags"`
			} `yaml:"metadata"`
		} `yaml:"registry"`
	}
	if err := yaml.Unmarshal(text, &catalog); err != nil {
		return nil, err
	}
	var servers []search.Server
	for _, name := range slices.Sorted(maps.Keys(catalog.Registry)) {
		entry := catalog.Registry[name]
		s := search.Server{Name: name, Title: entry.Title, Description: entry.Description, Tags: entry.Metadata.Tags}
		if entry.Metadata.Category != "" {
			s.Tags = append(s.Tags, entry.Metadata.Category)
		}
		for _, t := range entry.Tools {
			s.Tools = append(s.Tools, search.Tool{Name: t.Name, Description: t.Description})
		}
		servers = append(servers, s)
	}
	return servers, nil
}
