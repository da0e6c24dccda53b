package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/catalog/source"
	"github.com/dockgate/dockgate/internal/daemon"
	"github.com/dockgate/dockgate/internal/principal"
)

func newCatalog(f *flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "catalog",
		Short: "Look at servers, find more of them, and check catalog files",
	}
	cmd.AddCommand(newCatalogList(f), newCatalogShow(f), newCatalogValidate(f), newCatalogReport(f), newCatalogSearch(f), newCatalogAdd(f))
	return cmd
}

// A listedServer is a line of a listing of servers.
type listedServer struct {
	Name        string         `json:"name"`
	Title       string         `json:"title,omitempty"`
	Description string         `json:"description,omitempty"`
	Origin      catalog.Origin `json:"origin"`
	Image       string         `json:"image,omitempty"`
	Active      bool           `json:"active"`
	State       daemon.State   `json:"state"`
	// Reason says why the state is not "approved", where there is more to say.
	Reason string `json:"reason,omitempty"`
	// Stale says why the tools are those of an earlier listing.
	Stale string `json:"stale,omitempty"`
}

// standing is the state in words, for a table.
func (l listedServer) standing() string {
	if l.Stale != "" {
		return string(l.State) + ", tools stale"
	}
	return string(l.State)
}

func newListedServer(ctx context.Context, d *daemon.Daemon, entry catalog.Server) (listedServer, error) {
	standing, err := d.Standing(ctx, principal.Local, entry.Name)
	if err != nil {
		return listedServer{}, err
	}
	listed := listedServer{
		Name: entry.Name, Title: entry.Title, Description: entry.Description, Origin: entry.Origin,
		Image: entry.Image, Active: standing.Active, State: standing.State, Stale: standing.Stale,
	}
	if standing.Reason != nil {
		listed.Reason = standing.Reason.Error()
	}
	return listed, nil
}

func newCatalogList(f *flags) *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List the servers of all catalogs",
		Long: `List the servers of all catalogs: what can be used, what is active, and what is
approved. Where an entry took the place of another of the same name, that is
said on standard error.` + exits,
		Example: `  dockgate catalog ls
  dockgate catalog ls --catalog team.yaml --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.use(cmd.Context(), func(d *daemon.Daemon) error { return listCatalog(cmd, d, out) })
		},
	}
	out.flag(cmd)
	return cmd
}

func listCatalog(cmd *cobra.Command, d *daemon.Daemon, out output) error {
	for _, note := range d.Now().Notes {
		tell(cmd, "dockgate: note: %s", clean(note.String()))
	}
	servers := []listedServer{}
	var rows [][]string
	for _, entry := range d.Catalog().Servers() {
		listed, err := newListedServer(cmd.Context(), d, entry)
		if err != nil {
			return err
		}
		servers = append(servers, listed)
		mark := ""
		if listed.Active {
			mark = "yes"
		}
		rows = append(rows, []string{listed.Name, mark, listed.standing(), homely(listed.Origin.Catalog, d.Home), shorten(listed.Description, 60)})
	}
	return out.print(cmd, servers, func() error {
		header := []string{"NAME", "ACTIVE", "STATE", "CATALOG", "DESCRIPTION"}
		if width := columnsOf(cmd.OutOrStdout()); width > 0 {
			shortenLast(header, rows, width)
		}
		return writeTable(cmd.OutOrStdout(), header, rows)
	})
}

func newCatalogShow(f *flags) *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show the entry of a server",
		Long: `Show the entry of a server: what it is, the settings it takes, the rights it
asks for, and its tools as far as they are known without starting it.` + exits,
		Example: `  dockgate catalog show filesystem
  dockgate catalog show filesystem --json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: once(f.completeServers()),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.use(cmd.Context(), func(d *daemon.Daemon) error {
				entry, err := d.Catalog().Server(args[0])
				if err != nil {
					return err
				}
				return out.print(cmd, entry, func() error { return showEntry(cmd, d, entry) })
			})
		},
	}
	out.flag(cmd)
	return cmd
}

func showEntry(cmd *cobra.Command, d *daemon.Daemon, entry catalog.Server) error {
	listed, err := newListedServer(cmd.Context(), d, entry)
	if err != nil {
		return err
	}
	var b strings.Builder
	line := func(label, text string) {
		if text != "" {
			fmt.Fprintf(&b, "%-13s%s\n", label, clean(text))
		}
	}
	line("name:", entry.Name)
	line("title:", entry.Title)
	line("about:", entry.Description)
	line("catalog:", entry.Origin.String())
	state := listed.standing()
	if listed.Active {
		state += ", active"
	}
	line("state:", state)
	if entry.Unsupported == "" {
		for reason := range strings.SplitSeq(listed.Reason, "\n") {
			line("", reason)
		}
	}
	line("", listed.Stale)
	line("unsupported:", entry.Unsupported)
	line("image:", entry.Image)
	switch entry.Runs() {
	case catalog.KindRemote:
		line("remote:", entry.Remote.URL+" ("+entry.Remote.Transport+")")
	case catalog.KindExec:
		line("container:", entry.Exec.Container+", which is yours: not sandboxed by us")
	case catalog.KindProgram:
		line("program:", entry.Program.String())
		line("network:", requested(entry.Network))
	case catalog.KindContainer, catalog.KindTools:
		line("network:", requested(entry.Network))
	case catalog.KindUnsupported:
	}
	for _, m := range entry.Mounts {
		line("mount:", mounted(m))
	}
	for _, h := range entry.Helpers {
		line("helper:", h.Name+", "+h.Image)
	}
	for _, s := range entry.Secrets {
		text := s.Variable()
		if s.Required {
			text += ", required"
		}
		if s.File {
			text += ", the path of a file"
		}
		if s.Instructions != "" {
			text += ": " + s.Instructions
		}
		line("secret:", text)
	}
	line("login:", logsIn(entry))
	if entry.Config != nil {
		settings, err := json.MarshalIndent(entry.Config, strings.Repeat(" ", 13), "  ")
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%-13s%s\n", "settings:", settings)
	}
	for _, t := range knownTools(cmd.Context(), d, entry) {
		text := t.Name
		if t.Description != "" {
			text += ": " + shorten(t.Description, 90)
		}
		line("tool:", text)
	}
	for _, remark := range entry.Remarks {
		line("remark:", remark)
	}
	_, err = fmt.Fprint(cmd.OutOrStdout(), b.String())
	return err
}

func requested(n catalog.Network) string {
	switch n.Mode {
	case "":
		return string(catalog.NetworkNone)
	case catalog.NetworkAllow:
		return "allow " + strings.Join(n.Allow, ", ")
	case catalog.NetworkNone, catalog.NetworkPublic, catalog.NetworkFull:
	}
	return string(n.Mode)
}

// knownTools are what the server offered when it ran last, else what the
// catalog says of it.
func knownTools(ctx context.Context, d *daemon.Daemon, entry catalog.Server) []catalog.ToolSnapshot {
	made, err := d.Planner.Plan(ctx, principal.Local, entry.Name)
	if err != nil {
		return entry.Tools // it cannot have run like this
	}
	offer, ok, err := d.Caller.Offer(ctx, made)
	if err != nil || !ok {
		return entry.Tools
	}
	tools := make([]catalog.ToolSnapshot, 0, len(offer.Tools))
	for _, t := range offer.Tools {
		snapshot := catalog.ToolSnapshot{Name: t.Name}
		var definition struct {
			Description string `json:"description"`
		}
		if json.Unmarshal(t.JSON, &definition) == nil {
			snapshot.Description = definition.Description
		}
		tools = append(tools, snapshot)
	}
	return tools
}

func newCatalogValidate(f *flags) *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:   "validate FILE...",
		Short: "Check catalog files",
		Long: `Check catalog files, in whichever format they are, and print every mistake as
"file:line: field: problem". Where there is none, that is said on
standard error.` + exits,
		Example: `  dockgate catalog validate team.yaml
  dockgate catalog validate *.yaml --json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			options, err := f.around()
			if err != nil {
				return err
			}
			return validate(cmd, options, args, out)
		},
	}
	out.flag(cmd)
	return cmd
}

func validate(cmd *cobra.Command, options daemon.Options, files []string, out output) error {
	type problem struct {
		File  string `json:"file"`
		Line  int    `json:"line,omitempty"`
		Field string `json:"field,omitempty"`
		Text  string `json:"text"`
	}
	found := []problem{}
	var lines []string
	wrong := 0
	for _, file := range files {
		_, err := source.Load(cmd.Context(), catalog.User, file, options.Around(nil))
		if err == nil {
			continue
		}
		wrong++
		var problems catalog.Problems
		if !errors.As(err, &problems) {
			reason := err
			var path *os.PathError
			if errors.As(err, &path) {
				reason = path.Err
			} else if errors.Is(err, os.ErrNotExist) {
				reason = os.ErrNotExist
			}
			problems = catalog.Problems{{File: file, Text: reason.Error()}}
		}
		for _, p := range problems {
			found = append(found, problem{p.File, p.Line, p.Field, p.Text})
			lines = append(lines, clean(p.String())+"\n")
		}
	}
	err := out.print(cmd, found, func() error {
		_, err := fmt.Fprint(cmd.OutOrStdout(), strings.Join(lines, ""))
		return err
	})
	if err == nil && wrong > 0 {
		err = &exitError{code: 2, err: fmt.Errorf("%s in %s", count(len(found), "problem"), count(wrong, "file"))}
	}
	if err == nil && wrong == 0 && !out.json {
		tell(cmd, "no mistakes in %s", count(len(files), "file"))
	}
	return err
}

// count says how many there are of something.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
