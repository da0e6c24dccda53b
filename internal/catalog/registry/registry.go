// Package registry reads local registries of MCP servers: JSON files with the
// servers by their keys, in folders of the user or of a project.
//
// A registry does not say how a server is installed. Its command is looked up
// in the catalogs that were read before ("mcp-server-X" is X there too), or it
// names an image; what is in neither is unsupported. Unknown fields are
// mistakes.
package registry

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/catalog/document"
)

// Parse reads one file of a registry. The error is [catalog.Problems], and
// then nothing of the file is returned.
func Parse(origin catalog.Origin, data []byte, around catalog.Surroundings) (catalog.File, error) {
	return catalog.ParseWith(origin, data, func(r *document.Reader, root *yaml.Node, origin catalog.Origin) catalog.File {
		return Read(r, root, origin, around)
	})
}

// Matches reports whether a document is a registry: each of its members is a
// server, as far as the words that only registries have for one tell.
func Matches(root *yaml.Node) bool {
	if root.Kind != yaml.MappingNode || len(root.Content) == 0 {
		return false
	}
	for i := 1; i < len(root.Content); i += 2 {
		entry := document.Target(root.Content[i])
		if document.Member(entry, "capabilities") == nil && document.Member(entry, "installed") == nil && document.Member(entry, "transport") == nil {
			return false
		}
	}
	return true
}

// Read reads a file that has been opened already; what is wrong with it is in
// the reader then.
func Read(r *document.Reader, root *yaml.Node, origin catalog.Origin, around catalog.Surroundings) catalog.File {
	file := catalog.File{Origin: origin}
	r.Entries(func(r *document.Reader, name string, line int, n *yaml.Node) {
		at := origin
		at.Line = line
		if s, ok := server(r, name, at, n, around); ok {
			file.Servers = append(file.Servers, s)
		}
	})("", root)
	return file
}

func server(r *document.Reader, name string, origin catalog.Origin, n *yaml.Node, around catalog.Surroundings) (catalog.Server, bool) {
	s := catalog.Server{
		Name: name, Origin: origin, Network: catalog.Network{Mode: catalog.NetworkNone}, Isolation: catalog.Shared,
	}
	transport := "stdio"
	var command, url string
	var installed bool
	r.Mapping(map[string]document.Read{
		"name": r.Text(&s.Title), "description": r.Text(&s.Description), "capabilities": r.Texts(&s.Keywords),
		"transport": r.Text(&transport), "command": r.Text(&command), "url": r.Text(&url), "image": r.Text(&s.Image),
		"installed": r.Boolean(&installed), // on the host, where nothing is run
	})("", n)
	if r.BadAsWhole() {
		return catalog.Server{}, false
	}
	remote := catalog.StreamableHTTP
	switch transport {
	case "stdio":
	case "http", catalog.StreamableHTTP:
	case "sse":
		remote = catalog.SSE
	default:
		r.ReportAt("transport", "is %q, want stdio, http or sse", transport)
	}
	switch known, ok := lookUp(name, command, around); {
	case s.Image != "":
		s.Network.Mode = catalog.NetworkNone
	case url != "":
		s.Remote = &catalog.Remote{URL: url, Transport: remote}
	case ok:
		s = join(s, known)
	case command == "":
		s.Unsupported = "names no command, and no catalog has a server of this name"
	default:
		s.Unsupported = fmt.Sprintf("runs the program %s on the host, and no catalog has it; give it an image here", command)
	}
	catalog.ReportProblems(r, s, func(field string) string {
		switch {
		case strings.HasPrefix(field, "keywords"):
			return "capabilities" + strings.TrimPrefix(field, "keywords")
		case strings.HasPrefix(field, "remote.url"):
			return "url"
		}
		return field
	})
	return s, true
}

// lookUp finds the entry of another catalog that a registry's server stands
// for: by its command, else by its key.
func lookUp(name, command string, around catalog.Surroundings) (catalog.Server, bool) {
	words := strings.Fields(command)
	var candidates []string
	if len(words) > 0 {
		candidates = append(candidates, path.Base(words[0]))
	}
	for _, candidate := range append(candidates, name) {
		for _, form := range []string{candidate, strings.TrimPrefix(candidate, "mcp-server-"), strings.TrimSuffix(candidate, "-mcp")} {
			if s, ok := around.Entry(form); ok && form != "" && s.Runs() != catalog.KindUnsupported {
				return s, true
			}
		}
	}
	return catalog.Server{}, false
}

// join returns the known entry under the registry's name and words.
func join(s, known catalog.Server) catalog.Server {
	made := known
	made.Name, made.Origin = s.Name, s.Origin
	if s.Title != "" {
		made.Title = s.Title
	}
	if s.Description != "" {
		made.Description = s.Description
	}
	if s.Keywords != nil {
		made.Keywords = s.Keywords
	}
	if known.Name != s.Name {
		made.Remarks = append(slices.Clone(made.Remarks), "is "+known.Name+" of "+known.Origin.Catalog)
	}
	return made
}

// Places returns the folders in which registries are found, the user's first
// and then the project's, with slashes between folders.
func Places(around catalog.Surroundings) []string {
	places := []string{path.Join(around.Home, ".mcp-server-registry"), path.Join(around.Home, ".mcp/registry")}
	if project := path.Join(around.Dir, ".mcp-server-registry"); !slices.Contains(places, project) {
		places = append(places, project)
	}
	return places
}

// Files returns the files of a registry's folder, sorted.
func Files(folder string) []string {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil
	}
	var files []string
	for _, e := range entries {
		if !e.IsDir() && strings.EqualFold(filepath.Ext(e.Name()), ".json") {
			files = append(files, filepath.Join(folder, e.Name()))
		}
	}
	return files
}

// IsFolder reports whether a folder holds a registry: JSON files, each of
// which is one.
func IsFolder(folder string) bool {
	files := Files(folder)
	for _, file := range files {
		data, err := os.ReadFile(file) //nolint:gosec // the user names the folder
		if err != nil {
			return false
		}
		if root := document.New(file).Open(data, ""); root != nil && !Matches(root) {
			return false
		}
	}
	return len(files) > 0
}

// LoadFolder reads all files of a registry's folder as one catalog; of two
// servers with one key the one of the later file counts. The error has the
// problems of all files.
func LoadFolder(kind catalog.OriginKind, folder string, around catalog.Surroundings) (catalog.File, error) {
	all := catalog.File{Origin: catalog.Origin{Catalog: folder, Kind: kind}}
	var problems catalog.Problems
	var failures []error
	for _, path := range Files(folder) {
		data, err := os.ReadFile(path) //nolint:gosec // the user names the folder
		if err != nil {
			failures = append(failures, fmt.Errorf("catalog: %w", err))
			continue
		}
		file, err := Parse(catalog.Origin{Catalog: path, Kind: kind}, data, around)
		var found catalog.Problems
		if errors.As(err, &found) {
			problems = append(problems, found...)
		}
		for _, s := range file.Servers {
			all.Servers = slices.DeleteFunc(all.Servers, func(o catalog.Server) bool { return o.Name == s.Name })
			all.Servers = append(all.Servers, s)
		}
	}
	switch {
	case len(failures) > 0:
		return catalog.File{}, errors.Join(append(failures, problems)...)
	case len(problems) > 0:
		return catalog.File{}, problems
	}
	return all, nil
}
