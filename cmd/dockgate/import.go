package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/catalog/launch"
	"github.com/dockgate/dockgate/internal/catalog/source"
	"github.com/dockgate/dockgate/internal/catalog/spelling"
	"github.com/dockgate/dockgate/internal/daemon"
	"github.com/dockgate/dockgate/internal/setup"
)

// An imported source is a place that was looked at.
type importedSource struct {
	// Type is the kind of source, empty for one that was named by its path.
	Type    string     `json:"type,omitempty"`
	Path    string     `json:"path"`
	Missing bool       `json:"missing,omitempty"`
	Servers []imported `json:"servers"`
	// Problem says why it could not be read.
	Problem string `json:"problem,omitempty"`
}

// An imported server is what an entry becomes.
type imported struct {
	reported
	// Enabled says whether the source has it enabled.
	Enabled bool `json:"enabled"`
	// Settings are the user's settings that the source holds.
	Settings map[string]any `json:"settings,omitempty"`
	// Written is "added" or "already there"; empty if nothing was written.
	Written string `json:"written,omitempty"`
	entry   catalog.Server
}

func newImport(f *flags) *cobra.Command {
	var out output
	var write bool
	cmd := &cobra.Command{
		Use:   "import [SOURCE...]",
		Args:  cobra.ArbitraryArgs,
		Short: "Show what your servers elsewhere become, and take them over",
		Long: `Show what the servers of another program's configuration become here: a
container, a package in a runtime's image, a server elsewhere; or why they
cannot be run. Nothing that would weaken the sandbox is taken over, and that is
said. Values that look like secrets, by name or form, are not copied; one in an
argument, where no secret can stand, becomes a setting to be given.

A SOURCE is a path, or one of these, which are looked for where the programs
keep them; without one, all of these are:

  ` + strings.Join(sourceTypes(), "\n  ") + `

A source that is missing is shown and skipped; one with mistakes too, and then
the command fails once it has done the others.

With --write the servers that are enabled there are added to your own catalog,
$XDG_CONFIG_HOME/dockgate/servers.yaml. One that it has already stays as it is;
one with the name of a server of another catalog takes its place, and that is
said. Adding runs nothing and approves nothing.` + exits,
		Example: `  dockgate import claude-desktop
  dockgate import .vscode/mcp.json --write
  dockgate import --json`,
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			left := slices.DeleteFunc(sourceTypes(), func(name string) bool { return slices.Contains(args, name) })
			return left, cobra.ShellCompDirectiveDefault
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			options, err := f.options()
			if err != nil {
				return err
			}
			sources, unread, err := readSources(cmd.Context(), options, args)
			if err != nil {
				return err
			}
			if write {
				if err := writeSources(options, sources); err != nil {
					return err
				}
			}
			err = out.print(cmd, sources, func() error { return printSources(cmd, sources) })
			if err == nil && !slices.ContainsFunc(sources, func(s importedSource) bool { return !s.Missing }) {
				err = &noSourceError{named: args, inside: options.Outside != nil && options.Outside.Home == ""}
			}
			return errors.Join(err, unread)
		},
	}
	cmd.Flags().BoolVar(&write, "write", false, "add the servers to your own catalog")
	out.flag(cmd)
	return cmd
}

// A noSourceError says that there is nothing to import.
type noSourceError struct {
	named  []string
	inside bool // a container that does not see the home folder
}

func (e *noSourceError) Error() string { return "none of the sources is there" }

// Hint says how to see more, where more could be seen.
func (e *noSourceError) Hint() string {
	if len(e.named) == 1 {
		if meant, ok := spelling.Meant(e.named[0], sourceTypes()); ok && meant != e.named[0] {
			return "did you mean: dockgate import " + meant
		}
	}
	if !e.inside {
		return ""
	}
	return `this is a container that does not see your home folder: put -v "$HOME:$HOME:ro" -e "DOCKGATE_HOST_HOME=$HOME" --cap-add DAC_READ_SEARCH after "docker run"`
}

// An unreadError is what is wrong with sources that could not be read.
type unreadError struct{ err error }

func (e *unreadError) Error() string { return e.err.Error() }

func (e *unreadError) Unwrap() error { return e.err }

// Hint says how to go on: the files are those of other programs.
func (e *unreadError) Hint() string {
	var folder *source.FolderError
	if errors.As(e.err, &folder) {
		return folder.Hint()
	}
	return "nothing of these files was taken over; correct what is named there, and import again"
}

func sourceTypes() []string {
	var names []string
	for _, t := range source.Types() {
		names = append(names, string(t))
	}
	return names
}

// readSources reads every source. What could not be read is returned beside
// the others, as one error, so that one client's mistake hides no other client.
func readSources(ctx context.Context, options daemon.Options, args []string) (sources []importedSource, unread, err error) {
	if len(args) == 0 {
		args = sourceTypes()
	}
	files, err := setup.LoadFiles(ctx, options.Inputs)
	if err != nil {
		return nil, nil, err
	}
	around := options.Around(files)
	// What a project says takes nobody's name.
	known, _ := catalog.Merge(slices.DeleteFunc(slices.Clone(files), func(f catalog.File) bool { return f.Origin.Kind == catalog.Project })...)
	sources = []importedSource{}
	var failures []error
	for _, arg := range args {
		kind, places := "", []string{arg}
		if source.Known(arg) {
			kind, places = arg, source.Places(source.Type(arg), around)
		}
		for _, place := range places {
			read, err := readSource(ctx, place, around)
			if err != nil {
				failures = append(failures, err)
				read.Problem = err.Error()
			}
			for n := range read.Servers {
				read.Servers[n].compare(known, options)
			}
			read.Type = kind
			sources = append(sources, read)
		}
	}
	if len(failures) > 0 {
		unread = &unreadError{err: errors.Join(failures...)}
	}
	return sources, unread, nil
}

func readSource(ctx context.Context, path string, around catalog.Surroundings) (importedSource, error) {
	read := importedSource{Path: path, Servers: []imported{}}
	file, err := source.Load(ctx, catalog.User, path, around)
	if errors.Is(err, os.ErrNotExist) {
		read.Missing = true
		return read, nil
	}
	if err != nil {
		return read, err
	}
	for _, s := range file.Servers {
		s = launch.Copied(s)
		read.Servers = append(read.Servers, imported{
			reported: examine(s), Enabled: file.Enabled == nil || slices.Contains(file.Enabled, s.Name),
			Settings: file.Settings[s.Name], entry: s,
		})
	}
	return read, nil
}

// compare says what the server's name means now, where that is another server.
func (i *imported) compare(known *catalog.Catalog, options daemon.Options) {
	other, err := known.Server(i.Name)
	if err != nil || !i.Enabled || i.Kind == catalog.KindUnsupported ||
		other.Origin.Catalog == i.entry.Origin.Catalog || other.Origin.Catalog == options.OwnCatalog {
		return
	}
	text := fmt.Sprintf("has the name of %s of %s", becomes(other), other.Origin)
	if slices.Contains(options.Config.Catalogs, other.Origin.Catalog) {
		text += ", which comes before your own catalog: once written, this one is not used"
	} else {
		text += ", and takes its place once it is written: what was approved of that one does not hold for this"
	}
	i.Remarks = append(slices.Clone(i.Remarks), text+"; to keep both, give this one another name in "+options.OwnCatalog)
}

// writeSources adds what can be run and is enabled to the user's own catalog.
func writeSources(options daemon.Options, sources []importedSource) error {
	var entries []catalog.Server
	seen := make(map[string]bool)
	for _, s := range sources {
		for _, i := range s.Servers {
			if i.Enabled && i.Kind != catalog.KindUnsupported && !seen[i.Name] {
				seen[i.Name] = true
				entries = append(entries, i.entry)
			}
		}
	}
	if len(entries) == 0 {
		return nil
	}
	_, kept, err := addToOwn(options.OwnCatalog, entries)
	if err != nil {
		return err
	}
	for _, s := range sources {
		for n := range s.Servers {
			i := &s.Servers[n]
			switch {
			case !i.Enabled || i.Kind == catalog.KindUnsupported:
			case seen[i.Name] && !slices.Contains(kept, i.Name):
				i.Written = "added"
				delete(seen, i.Name) // another of this name was not
			default:
				i.Written = "already there"
			}
		}
	}
	return nil
}

func printSources(cmd *cobra.Command, sources []importedSource) error {
	for n, s := range sources {
		title := clean(s.Path)
		if s.Type != "" {
			title = s.Type + ": " + title
		}
		if s.Missing {
			title += ": not there, skipped"
		}
		switch {
		case s.Problem != "":
			title += ": cannot be read, skipped"
		case !s.Missing && len(s.Servers) == 0:
			title += ": names no server"
		}
		if n > 0 && len(s.Servers)+len(sources[n-1].Servers) > 0 {
			title = "\n" + title
		}
		if _, err := fmt.Fprintln(cmd.OutOrStdout(), title); err != nil {
			return err
		}
		for _, i := range s.Servers {
			if _, err := fmt.Fprint(cmd.OutOrStdout(), i.text()); err != nil {
				return err
			}
		}
	}
	return nil
}

// text describes what an entry becomes, in some lines.
func (i imported) text() string {
	var b strings.Builder
	line := func(label, text string) {
		if text != "" {
			fmt.Fprintf(&b, "    %-13s%s\n", label, clean(text))
		}
	}
	state := ""
	if !i.Enabled {
		state = " (not enabled)"
	}
	if i.Written != "" {
		state = " (" + i.Written + ")"
	}
	fmt.Fprintf(&b, "  %s%s\n", clean(i.Name), state)
	line(string(i.Kind)+":", i.Source)
	if i.Kind != catalog.KindUnsupported && i.Kind != catalog.KindRemote && i.Kind != catalog.KindExec {
		line("network:", i.Network)
	}
	for _, m := range i.Mounts {
		line("mount:", m)
	}
	for _, h := range i.Helpers {
		line("helper:", h)
	}
	if len(i.Secrets) > 0 {
		line("secrets:", strings.Join(i.Secrets, ", "))
	}
	line("login:", i.Login)
	for _, remark := range i.Remarks {
		line("remark:", remark)
	}
	if len(i.Settings) > 0 {
		line("settings:", "dockgate add "+i.Name+assignments(i.Settings))
	}
	return b.String()
}

// assignments writes settings as they stand on a command line.
func assignments(settings map[string]any) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		text, isText := settings[name].(string)
		if !isText {
			encoded, err := json.Marshal(settings[name])
			if err != nil {
				continue // decoded from YAML, so it encodes
			}
			text = string(encoded)
		}
		fmt.Fprintf(&b, " --set %s", quote(name+"="+text))
	}
	return b.String()
}

// quote quotes a word for a shell, where it has to be.
func quote(word string) string {
	if word != "" && !strings.ContainsAny(word, " \t\n\"'\\$`*?[]{}()<>|&;#~!") {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
