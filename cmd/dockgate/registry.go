package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/catalog/official"
	"github.com/dockgate/dockgate/internal/daemon"
	"github.com/dockgate/dockgate/internal/setup"
)

// maxFound is the most servers that one search of a registry lists.
const maxFound = 1000

// A foundServer is one that a registry has.
type foundServer struct {
	// Registered is its name in the registry.
	Registered  string `json:"registered"`
	Version     string `json:"version,omitempty"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	reported
}

// askRegistry returns the registry at a URL; "" is the user's.
func (f *flags) askRegistry(cmd *cobra.Command, url string) (*official.Registry, daemon.Options, error) {
	if err := official.CheckURL(url); url != "" && err != nil {
		return nil, daemon.Options{}, &usageError{cmd: cmd, err: fmt.Errorf("--registry %w", err)}
	}
	options, err := f.options()
	if err != nil {
		return nil, options, err
	}
	files, err := setup.LoadFiles(cmd.Context(), options.Inputs)
	if err != nil {
		return nil, options, err
	}
	return options.Registry(url, options.Config.Discovery.Cache.Life(), files), options, nil
}

const registryFlag = "`URL` of the registry (default the first of the configuration, else " + official.DefaultBase + ")"

func newCatalogSearch(f *flags) *cobra.Command {
	var out output
	var url string
	var limit int
	cmd := &cobra.Command{
		Use:   "search QUERY",
		Short: "Search the official MCP registry for servers",
		Long: `Search the official MCP registry, or one of its kind, for servers whose name has
the query in it, and show what each would be here: an image, a package in a
runtime's image, a server elsewhere; or why it cannot be run.

Answers are kept in the state folder for as long as discovery.cache.ttl says,
and for longer while the registry cannot be reached.` + exitsSearch,
		Example: `  dockgate catalog search github
  dockgate catalog search github --json
  dockgate catalog search notes --registry https://registry.example.com`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 1 || limit > maxFound {
				return &usageError{cmd: cmd, err: fmt.Errorf("--limit is %d, want 1 to %d", limit, maxFound)}
			}
			registry, _, err := f.askRegistry(cmd, url)
			if err != nil {
				return err
			}
			found, err := registry.Search(cmd.Context(), args[0], limit)
			if err != nil {
				return err
			}
			return showFound(cmd, out, args[0], found)
		},
	}
	cmd.Flags().StringVar(&url, "registry", "", registryFlag)
	cmd.Flags().IntVar(&limit, "limit", 30, "the most results")
	out.flag(cmd)
	return cmd
}

func showFound(cmd *cobra.Command, out output, query string, found []official.Found) error {
	servers := make([]foundServer, len(found))
	rows := make([][]string, len(found))
	for i, one := range found {
		servers[i] = foundServer{one.Name, one.Version, one.Entry.Title, one.Entry.Description, examine(one.Entry)}
		rows[i] = []string{one.Name, one.Version, string(servers[i].Kind), shorten(one.Entry.Description, 80)}
	}
	err := out.print(cmd, servers, func() error {
		if len(rows) == 0 {
			return nil
		}
		header := []string{"NAME", "VERSION", "KIND", "DESCRIPTION"}
		if width := columnsOf(cmd.OutOrStdout()); width > 0 {
			shortenLast(header, rows, width)
		}
		return writeTable(cmd.OutOrStdout(), header, rows)
	})
	if err == nil && len(found) == 0 {
		return &exitError{code: 2, err: fmt.Errorf("the registry has no server with %q in its name", query)}
	}
	return err
}

func newCatalogAdd(f *flags) *cobra.Command {
	var out output
	var url, as string
	cmd := &cobra.Command{
		Use:   "add NAME[@VERSION]",
		Short: "Add a server of the official MCP registry to your own catalog",
		Long: `Add a server of the official MCP registry, or of one of its kind, to your own
catalog, $XDG_CONFIG_HOME/dockgate/servers.yaml. NAME is as "dockgate catalog
search" lists it; without a VERSION it is the newest. There the server is named
with a dot for the slash, unless --as says otherwise. A name that your catalog
has already stays what it is. Adding runs nothing and approves nothing.` + exits,
		Example: `  dockgate catalog add io.github.owner/server
  dockgate catalog add io.github.owner/server@1.2.0 --as server`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.Contains(args[0], "://") || strings.ContainsAny(args[0], " \t") {
				return &usageError{
					cmd: cmd, err: fmt.Errorf("%q is no name of a server, such as io.github.owner/server", args[0]),
					hint: "find its name with: dockgate catalog search WORD; a remote server without one goes into a catalog, as README says under Remote servers",
				}
			}
			registry, options, err := f.askRegistry(cmd, url)
			if err != nil {
				return err
			}
			name, version, _ := strings.Cut(args[0], "@")
			found, err := registry.Server(cmd.Context(), name, version)
			if errors.Is(err, official.ErrUnknown) {
				return &unknownFoundError{args[0], err}
			}
			if err != nil {
				return err
			}
			if as != "" {
				found.Entry.Name = as
			}
			return addFound(cmd, out, options, found.Entry)
		},
	}
	cmd.Flags().StringVar(&url, "registry", "", registryFlag)
	cmd.Flags().StringVar(&as, "as", "", "`name` of the server in your catalog")
	out.flag(cmd)
	return cmd
}

func addFound(cmd *cobra.Command, out output, options daemon.Options, entry catalog.Server) error {
	if entry.Runs() == catalog.KindUnsupported {
		return fmt.Errorf("server %q cannot be run: %s", entry.Name, entry.Unsupported)
	}
	if err := entry.Validate(); err != nil {
		return err
	}
	sources := []importedSource{{Path: entry.Origin.Catalog, Servers: []imported{{reported: examine(entry), Enabled: true, entry: entry}}}}
	if err := writeSources(options, sources); err != nil {
		return err
	}
	one := sources[0].Servers[0]
	if err := out.print(cmd, one, func() error {
		_, err := fmt.Fprint(cmd.OutOrStdout(), one.text())
		return err
	}); err != nil {
		return err
	}
	tell(cmd, "make it active with: dockgate add %s", quote(entry.Name))
	return nil
}

// An unknownFoundError is a name that the registry does not have.
type unknownFoundError struct {
	name string
	err  error
}

func (e *unknownFoundError) Error() string { return e.err.Error() }

func (e *unknownFoundError) Unwrap() error { return e.err }

// Hint says how names are found.
func (e *unknownFoundError) Hint() string {
	name, _, _ := strings.Cut(e.name, "@")
	return "find its whole name with: dockgate catalog search " + quote(name[strings.LastIndexByte(name, '/')+1:])
}
