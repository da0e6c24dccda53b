package main

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/daemon"
	"github.com/dockgate/dockgate/internal/principal"
)

func newList(f *flags) *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List your active servers with their settings",
		Long: `List your active servers with their settings, and what they wait for.
Tools are stale if the server could not list them when it was asked last; it
then keeps those that it listed before.` + exits,
		Example: `  dockgate ls
  dockgate ls --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.use(cmd.Context(), func(d *daemon.Daemon) error { return listActive(cmd, d, out) })
		},
	}
	out.flag(cmd)
	return cmd
}

func listActive(cmd *cobra.Command, d *daemon.Daemon, out output) error {
	type activeServer struct {
		listedServer
		Settings map[string]any `json:"settings"`
	}
	names, err := active(cmd.Context(), d)
	if err != nil {
		return err
	}
	servers := []activeServer{}
	var rows [][]string
	for _, name := range names {
		entry, err := d.Catalog.Server(name)
		var unknown *catalog.UnknownServerError
		if errors.As(err, &unknown) {
			entry = catalog.Server{Name: name} // its catalog is not used here
		} else if err != nil {
			return err
		}
		listed, err := newListedServer(cmd.Context(), d, entry)
		if err != nil {
			return err
		}
		settings, err := d.Active.Settings(cmd.Context(), principal.Local, name)
		if err != nil {
			return err
		}
		shown, err := showSettings(settings)
		if err != nil {
			return err
		}
		servers = append(servers, activeServer{listed, settings})
		rows = append(rows, []string{name, listed.standing(), shown})
	}
	return out.print(cmd, servers, func() error {
		if len(servers) == 0 {
			tell(cmd, "no server is active; choose one with: dockgate catalog ls, then dockgate add NAME")
			return nil
		}
		return writeTable(cmd.OutOrStdout(), []string{"NAME", "STATE", "SETTINGS"}, rows)
	})
}

// showSettings writes settings as they are set.
func showSettings(settings map[string]any) (string, error) {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		text, isText := settings[name].(string)
		if !isText {
			encoded, err := json.Marshal(settings[name])
			if err != nil {
				return "", err
			}
			text = string(encoded)
		}
		words = append(words, name+"="+text)
	}
	return strings.Join(words, " "), nil
}
