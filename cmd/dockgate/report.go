package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/catalog/source"
	"github.com/dockgate/dockgate/internal/plan"
)

// A reported entry is what a catalog's entry asks for.
type reported struct {
	Name    string       `json:"name"`
	Kind    catalog.Kind `json:"kind"`
	Source  string       `json:"source,omitempty"`
	Network string       `json:"network"`
	Mounts  []string     `json:"mounts,omitempty"`
	Secrets []string     `json:"secrets,omitempty"`
	// Helpers are the containers that run beside it.
	Helpers []string `json:"helpers,omitempty"`
	// Login is who the person logs in to, and the command that does.
	Login string `json:"login,omitempty"`
	// NotYet says why it cannot be run, if it cannot.
	NotYet  string   `json:"not_yet,omitempty"`
	Remarks []string `json:"remarks,omitempty"`
}

// A summary counts what entries ask for.
type summary struct {
	Servers     int                  `json:"servers"`
	Kinds       map[catalog.Kind]int `json:"kinds"`
	Networks    map[string]int       `json:"networks"`
	WithMounts  int                  `json:"with_mounts"`
	WithSecrets int                  `json:"with_secrets"`
	Entries     []reported           `json:"entries"`
}

func newCatalogReport(f *flags) *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:   "report FILE",
		Short: "Show what the servers of a catalog file ask for",
		Long: `Show what every server of a catalog file or folder asks for, in whichever format
it is: network, mounts and secrets, and which of them cannot be run yet and why.
What cannot be represented at all is an error that names the file, the line and
the field.` + exits,
		Example: `  dockgate catalog report docker-catalog.yaml
  dockgate catalog report ~/.docker/mcp --json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			options, err := f.around()
			if err != nil {
				return err
			}
			file, err := source.Load(cmd.Context(), catalog.User, args[0], options.Around(nil))
			if err != nil {
				return err
			}
			found := summarize(file.Servers)
			return out.print(cmd, found, func() error { return found.write(cmd) })
		},
	}
	out.flag(cmd)
	return cmd
}

func summarize(servers []catalog.Server) summary {
	found := summary{
		Servers: len(servers), Kinds: make(map[catalog.Kind]int), Networks: make(map[string]int), Entries: []reported{},
	}
	for _, s := range servers {
		r := examine(s)
		found.Kinds[r.Kind]++
		found.Networks[strings.Fields(r.Network)[0]]++
		if len(r.Mounts) > 0 {
			found.WithMounts++
		}
		if len(r.Secrets) > 0 {
			found.WithSecrets++
		}
		found.Entries = append(found.Entries, r)
	}
	slices.SortStableFunc(found.Entries, func(a, b reported) int { return cmp.Compare(a.Name, b.Name) })
	return found
}

func examine(s catalog.Server) reported {
	r := reported{Name: s.Name, Kind: s.Runs(), Source: becomes(s), Network: requested(s.Network), Remarks: s.Remarks}
	if s.Remote != nil {
		r.Network = "remote"
	}
	for _, m := range s.Mounts {
		r.Mounts = append(r.Mounts, mounted(m))
	}
	for _, t := range s.Tools {
		if t.Run == nil {
			continue
		}
		for _, m := range t.Run.Mounts {
			r.Mounts = append(r.Mounts, t.Name+": "+mounted(m))
		}
	}
	for _, secret := range s.Secrets {
		r.Secrets = append(r.Secrets, secret.Variable())
	}
	for _, h := range s.Helpers {
		r.Helpers = append(r.Helpers, h.Name+", "+h.Image)
		for _, m := range h.Mounts {
			r.Mounts = append(r.Mounts, h.Name+": "+mounted(m))
		}
		for _, secret := range h.Secrets {
			r.Secrets = append(r.Secrets, h.Name+": "+secret.Variable())
		}
	}
	r.Login = logsIn(s)
	if err := plan.Supported(s); err != nil {
		r.NotYet = err.Error()
	}
	return r
}

// logsIn says how a person logs in to a server, "" if they do not.
func logsIn(s catalog.Server) string {
	if !s.LogsIn() {
		return ""
	}
	text := "OAuth"
	for i, p := range s.OAuth.Providers {
		text += map[bool]string{true: " of ", false: ", "}[i == 0] + p.Provider
	}
	if len(s.OAuth.Scopes) > 0 {
		text += " (" + strings.Join(s.OAuth.Scopes, " ") + ")"
	}
	return text + ", once it is approved: dockgate login " + s.Name
}

func mounted(m catalog.Mount) string {
	mode := "read and write"
	if m.ReadOnly {
		mode = "read only"
	}
	what := m.Source
	if m.Volume != "" {
		what = "volume " + m.Volume
	}
	return fmt.Sprintf("%s at %s (%s)", what, m.Target, mode)
}

// becomes says in short what an entry runs.
func becomes(s catalog.Server) string {
	switch s.Runs() {
	case catalog.KindContainer:
		return s.Image
	case catalog.KindProgram:
		return s.Program.String()
	case catalog.KindExec:
		return "exec in " + s.Exec.Container + " (not sandboxed by us)"
	case catalog.KindRemote:
		return s.Remote.URL
	case catalog.KindTools:
		return "a container for each call"
	case catalog.KindUnsupported:
	}
	return s.Unsupported
}

// rows are the lines of an entry in the table: what there are several of stands
// one below the other, so that one server's list makes no column wide for all.
func (r reported) rows() [][]string {
	networks := strings.SplitAfter(r.Network, ", ")
	lists := [][]string{{r.Name}, {string(r.Kind)}, networks, r.Mounts, r.Secrets, {shorten(r.Source, 60)}}
	var rows [][]string
	for i := range max(1, len(networks), len(r.Mounts), len(r.Secrets)) {
		row := make([]string, len(lists))
		for column, list := range lists {
			if i < len(list) {
				row[column] = strings.TrimRight(list[i], " ")
			}
		}
		rows = append(rows, row)
	}
	return rows
}

func (s summary) write(cmd *cobra.Command) error {
	rows := make([][]string, 0, len(s.Entries))
	for _, r := range s.Entries {
		rows = append(rows, r.rows()...)
	}
	if err := writeTable(cmd.OutOrStdout(), []string{"NAME", "KIND", "NETWORK", "MOUNTS", "SECRETS", "SOURCE"}, rows); err != nil {
		return err
	}
	var kinds, networks []string
	for _, kind := range slices.Sorted(maps.Keys(s.Kinds)) {
		kinds = append(kinds, fmt.Sprintf("%d %s", s.Kinds[kind], kind))
	}
	for _, network := range slices.Sorted(maps.Keys(s.Networks)) {
		networks = append(networks, fmt.Sprintf("%d %s", s.Networks[network], network))
	}
	var remarks strings.Builder
	for _, r := range s.Entries {
		if r.NotYet != "" {
			fmt.Fprintln(&remarks, clean(r.NotYet))
		}
		for _, remark := range r.Remarks {
			fmt.Fprintf(&remarks, "remark on %s: %s\n", clean(r.Name), clean(remark))
		}
	}
	if remarks.Len() > 0 {
		if _, err := fmt.Fprint(cmd.OutOrStdout(), "\n"+remarks.String()); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "\n%s: %s\nnetwork: %s\n%d with mounts, %d with secrets; all of them can be represented\n",
		count(s.Servers, "server"), strings.Join(kinds, ", "), strings.Join(networks, ", "), s.WithMounts, s.WithSecrets)
	return err
}
