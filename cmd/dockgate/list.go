package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dockgate/dockgate/internal/daemon"
	"github.com/dockgate/dockgate/internal/meta"
	"github.com/dockgate/dockgate/internal/principal"
)

// listFlags are those of list.
type listFlags struct {
	output
	status bool
	tools  bool
}

func newList(f *flags) *cobra.Command {
	var own listFlags
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List your servers: those that are active or approved",
		Long: `List your servers: those that are active or approved, and those that discovery
names in the configuration, with how many tools each has. A server need not be
connected to be used: it starts on its first call.

--status adds what each waits for, and its settings; --tools how many of its
tools the tool rules enable. Tools are stale if the server could not list them
when it was asked last; it then keeps those that it listed before.` + exits,
		Example: `  dockgate list
  dockgate list --status --tools
  dockgate list --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.use(cmd.Context(), func(d *daemon.Daemon) error { return list(cmd, d, own) })
		},
	}
	own.flag(cmd)
	cmd.Flags().BoolVar(&own.status, "status", false, "show what each server waits for, and its settings")
	cmd.Flags().BoolVar(&own.tools, "tools", false, "show how many tools are enabled")
	return cmd
}

// A yourServer is one of the user's servers, as list shows it.
type yourServer struct {
	meta.Server
	Active   bool           `json:"active"`
	Settings map[string]any `json:"settings"`
	// Standing is where its approval stands.
	Standing string `json:"standing"`
}

func list(cmd *cobra.Command, d *daemon.Daemon, own listFlags) error {
	servers, err := yourServers(cmd, d)
	if err != nil {
		return err
	}
	return own.print(cmd, map[string]any{"servers": servers}, func() error {
		paint := paintFor(cmd.OutOrStdout())
		lines := []string{fmt.Sprintf("MCP Servers (%d configured):", len(servers))}
		for _, server := range servers {
			described, err := own.describe(paint, server)
			if err != nil {
				return err
			}
			lines = append(lines, described...)
		}
		if len(servers) == 0 {
			tell(cmd, "no server is active; choose one with: dockgate catalog ls, then dockgate add NAME")
		}
		_, err := fmt.Fprintln(cmd.OutOrStdout(), strings.Join(lines, "\n"))
		return err
	})
}

// yourServers returns the user's servers. Those whose containers run in some
// gateway are connected.
func yourServers(cmd *cobra.Command, d *daemon.Daemon) ([]yourServer, error) {
	found, err := d.Desk.Servers(cmd.Context(), principal.Local)
	if err != nil {
		return nil, err
	}
	containers, err := d.Running(cmd.Context())
	if err != nil { // without an engine nothing is connected
		d.Logger.DebugContext(cmd.Context(), "look at what runs", "err", err)
	}
	running := make(map[string]bool)
	for _, container := range containers {
		running[container.Server] = true
	}
	servers := make([]yourServer, len(found))
	for i, server := range found {
		if running[server.Name] && server.Status == meta.Disconnected {
			server.Status, server.State = meta.Connected, "ready"
		}
		standing, err := d.Standing(cmd.Context(), principal.Local, server.Name)
		if err != nil {
			return nil, err
		}
		settings, err := d.Active.Settings(cmd.Context(), principal.Local, server.Name)
		if err != nil {
			return nil, err
		}
		servers[i] = yourServer{Server: server, Active: standing.Active, Settings: settings, Standing: string(standing.State)}
	}
	return servers, nil
}

func (own listFlags) describe(paint paint, server yourServer) ([]string, error) {
	mark, status := paint.red("✗"), map[meta.Status]string{
		meta.Connected: "Connected", meta.Disconnected: "Disconnected", meta.Broken: "Error",
	}[server.Status]
	if server.Status == meta.Connected {
		mark = paint.green("✓")
	}
	lines := []string{"", fmt.Sprintf("%s %s (%s)", mark, clean(server.Name), plural(server.ToolCount, "tool"))}
	if server.Description != "" {
		lines = append(lines, "  "+clean(server.Description))
	}
	lines = append(lines, "  Status: "+status)
	if own.tools {
		lines = append(lines, fmt.Sprintf("  Tools: %d enabled, %d disabled", server.EnabledCount, server.ToolCount-server.EnabledCount))
	}
	if !own.status {
		return lines, nil
	}
	state := server.State
	if server.StartsOnUse && server.Status == meta.Disconnected {
		state += ", starts on use"
	}
	lines = append(lines, "  State: "+state, "  Approval: "+server.Standing)
	if server.Problem != "" {
		lines = append(lines, "  Problem: "+clean(server.Problem))
	}
	if !server.Active {
		return append(lines, "  Active: no"), nil
	}
	shown, err := showSettings(server.Settings)
	if shown != "" {
		lines = append(lines, "  Settings: "+clean(shown))
	}
	return lines, err
}

// plural counts things.
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
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
