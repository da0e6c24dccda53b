package catalog

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A Catalog is what several files together offer. It does not change, so it
// may be used by several goroutines; what it returns must not be changed.
type Catalog struct {
	servers  map[string]Server
	clis     map[string]CLI
	runtimes map[string]Runtime
}

// A Note says that an entry took the place of another of the same name.
type Note struct {
	// Kind is "server", "cli" or "runtime".
	Kind string
	Name string
	// Winner is where the entry stands that counts, Loser the one that does not.
	Winner, Loser Origin
}

// String returns a sentence for the log.
func (n Note) String() string {
	return fmt.Sprintf("%s %q of %s overrides the one of %s", n.Kind, n.Name, n.Winner, n.Loser)
}

// Merge makes one catalog of several files. Of two entries with one name the
// later file's wins as a whole; nothing of the earlier entry is kept. The
// notes are in the order of the files.
func Merge(files ...File) (*Catalog, []Note) {
	c := &Catalog{
		servers:  make(map[string]Server),
		clis:     make(map[string]CLI),
		runtimes: make(map[string]Runtime),
	}
	var notes []Note
	for _, file := range files {
		for _, s := range file.Servers {
			if old, ok := c.servers[s.Name]; ok {
				notes = append(notes, Note{Kind: "server", Name: s.Name, Winner: s.Origin, Loser: old.Origin})
			}
			c.servers[s.Name] = s
		}
		for _, cli := range file.CLIs {
			if old, ok := c.clis[cli.Name]; ok {
				notes = append(notes, Note{Kind: "cli", Name: cli.Name, Winner: cli.Origin, Loser: old.Origin})
			}
			c.clis[cli.Name] = cli
		}
		for _, name := range slices.Sorted(maps.Keys(file.Runtimes)) {
			runtime := file.Runtimes[name]
			if old, ok := c.runtimes[name]; ok {
				notes = append(notes, Note{Kind: "runtime", Name: name, Winner: runtime.Origin, Loser: old.Origin})
			}
			c.runtimes[name] = runtime
		}
	}
	return c, notes
}

// Server returns the entry with that name, or an [*UnknownServerError].
func (c *Catalog) Server(name string) (Server, error) {
	if s, ok := c.servers[name]; ok {
		return s, nil
	}
	names := slices.Collect(maps.Keys(c.servers))
	return Server{}, &UnknownServerError{Name: name, Nearest: Nearest(name, names)}
}

// Servers returns all entries, sorted by name.
func (c *Catalog) Servers() []Server {
	return slices.SortedFunc(maps.Values(c.servers), func(a, b Server) int { return cmp.Compare(a.Name, b.Name) })
}

// CLIs returns the command-line programs, sorted by name.
func (c *Catalog) CLIs() []CLI {
	return slices.SortedFunc(maps.Values(c.clis), func(a, b CLI) int { return cmp.Compare(a.Name, b.Name) })
}

// Runtime returns the runtime with that name, "npx" or "uvx".
func (c *Catalog) Runtime(name string) (Runtime, bool) {
	runtime, ok := c.runtimes[name]
	return runtime, ok
}

// An UnknownServerError says that no catalog has a server of that name.
type UnknownServerError struct {
	Name string
	// Nearest are the names most like it, the likeliest first; at most three.
	Nearest []string
}

// Error names the nearest servers.
func (e *UnknownServerError) Error() string {
	if len(e.Nearest) == 0 {
		return fmt.Sprintf("unknown server %q: the catalog is empty", e.Name)
	}
	return fmt.Sprintf("unknown server %q; nearest: %s", e.Name, strings.Join(e.Nearest, ", "))
}

// Hint says where all names are listed.
func (e *UnknownServerError) Hint() string {
	return "list every server with: dockgate catalog ls"
}
