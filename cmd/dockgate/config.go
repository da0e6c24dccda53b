package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dockgate/dockgate/internal/daemon"
	"github.com/dockgate/dockgate/internal/inventory"
	"github.com/dockgate/dockgate/internal/meta"
	"github.com/dockgate/dockgate/internal/policy"
	"github.com/dockgate/dockgate/internal/presence"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/rules"
	"github.com/dockgate/dockgate/internal/setup"
	"github.com/dockgate/dockgate/internal/tool"
)

func newConfig(f *flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show, check and reload the configuration",
		Long: `Show, check and reload the configuration: the user's file (--config, else
$XDG_CONFIG_HOME/dockgate/config.yaml), narrowed by the project's in the working
directory (.dockgate/config.yaml, dockgate.yaml). A project can lower quotas,
take groups and tools away, switch discovery, cache and anticipation off, and
add servers, which wait for approval; it can set nothing else.` + exits,
	}
	cmd.AddCommand(newConfigShow(f), newConfigValidate(f), newConfigSources(f), newConfigReload(f), newConfigSchema())
	return cmd
}

func newConfigShow(f *flags) *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show the configuration, and where each value comes from",
		Long: `Show the configuration as it holds here: built-in values, the user's file, and
what the project narrows, each with the file and line that it comes from. What
is long or may be secret is shown by its size.` + exits,
		Example: `  dockgate config show
  dockgate config show --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.use(cmd.Context(), func(d *daemon.Daemon) error {
				shown, err := newShownConfig(cmd, d)
				if err != nil {
					return err
				}
				return out.print(cmd, shown, func() error { return shown.print(cmd, d.Home) })
			})
		},
	}
	out.flag(cmd)
	return cmd
}

// A shownConfig is the configuration, as show prints it.
type shownConfig struct {
	Enabled bool             `json:"enabled"`
	Cache   shownCache       `json:"cache"`
	Files   []string         `json:"files"`
	Sources []setup.Place    `json:"sources"`
	Rules   []rules.Rule     `json:"toolRules"`
	Servers shownServers     `json:"servers"`
	Tools   shownTools       `json:"tools"`
	Values  []policy.Setting `json:"settings"`
	// Gateways are those that run with this state folder.
	Gateways []presence.Presence `json:"gateways"`
}

type shownCache struct {
	Enabled bool `json:"enabled"`
	TTL     int  `json:"ttl"`
	inventory.Uses
	// HitRate is the share of the hits.
	HitRate float64 `json:"hitRate"`
}

type shownServers struct {
	Configured int `json:"configured"`
	Connected  int `json:"connected"`
}

type shownTools struct {
	Total   int `json:"total"`
	Enabled int `json:"enabled"`
}

func newShownConfig(cmd *cobra.Command, d *daemon.Daemon) (shownConfig, error) {
	cache := d.Now().Cache()
	shown := shownConfig{
		Enabled: !d.Now().DiscoveryOff(),
		Cache:   shownCache{Enabled: !cache.Off(), TTL: int(cache.Life().Seconds())},
		Files:   append([]string{}, d.Now().Files()...),
		Sources: d.Now().Places, Rules: append([]rules.Rule{}, d.Now().Rules.List()...), Values: d.Now().Settings(),
	}
	uses, err := d.Uses(cmd.Context())
	if err != nil {
		return shown, err
	}
	shown.Cache.Uses, shown.Cache.HitRate = uses, uses.Rate()
	gateways, err := presence.Running(cmd.Context(), d.Store)
	if err != nil {
		return shown, err
	}
	shown.Gateways = append([]presence.Presence{}, gateways...)
	servers, err := yourServers(cmd, d)
	shown.Servers.Configured = len(servers)
	for _, server := range servers {
		if server.Status == meta.Connected {
			shown.Servers.Connected++
		}
		shown.Tools.Total += server.ToolCount
		shown.Tools.Enabled += server.EnabledCount
	}
	return shown, err
}

func (s shownConfig) print(cmd *cobra.Command, home string) error {
	state := map[bool]string{true: "Enabled", false: "Disabled"}
	lines := []string{
		"MCP Discovery Configuration:", "",
		"Status: " + state[s.Enabled],
		fmt.Sprintf("Cache: %s (TTL: %ds)", state[s.Cache.Enabled], s.Cache.TTL),
	}
	if asked := s.Cache.Hits + s.Cache.Misses; asked > 0 {
		lines = append(lines, fmt.Sprintf("Cache hit rate: %.1f%% of %d", 100*s.Cache.HitRate, asked))
	}
	for _, gateway := range s.Gateways {
		if gateway.Problem != "" {
			lines = append(lines, "Gateway "+clean(gateway.ID)+" goes on with an earlier configuration: "+clean(gateway.Problem))
		}
		if len(gateway.Restart) > 0 {
			lines = append(lines, "Gateway "+clean(gateway.ID)+" needs a restart for: "+clean(strings.Join(gateway.Restart, ", ")))
		}
	}
	lines = append(lines, "",
		fmt.Sprintf("Files (%d):", len(s.Files)))
	for _, file := range s.Files {
		lines = append(lines, "  "+clean(homely(file, home)))
	}
	lines = append(lines, "", fmt.Sprintf("Sources (%d):", len(s.Sources)))
	paint := paintFor(cmd.OutOrStdout())
	for _, place := range s.Sources {
		lines = append(lines, "  "+describePlace(paint, place, home))
	}
	lines = append(lines, "", fmt.Sprintf("Tool Rules (%d):", len(s.Rules)))
	for i, rule := range s.Rules {
		lines = append(lines, fmt.Sprintf("  %d. %s", i+1, clean(rule.String())))
	}
	lines = append(lines, "",
		fmt.Sprintf("Servers: %d configured, %d connected", s.Servers.Configured, s.Servers.Connected),
		fmt.Sprintf("Tools: %d total, %d enabled", s.Tools.Total, s.Tools.Enabled), "", "Settings:")
	if _, err := fmt.Fprintln(cmd.OutOrStdout(), strings.Join(lines, "\n")); err != nil {
		return err
	}
	rows := make([][]string, len(s.Values))
	for i, value := range s.Values {
		rows[i] = []string{"  " + value.Key, fmt.Sprint(value.Value), homely(value.From, home)}
	}
	return writeTable(cmd.OutOrStdout(), []string{"  KEY", "VALUE", "FROM"}, rows)
}

func describePlace(paint paint, place setup.Place, home string) string {
	text := clean(place.Type)
	if place.Path != "" {
		text += " (" + clean(homely(place.Path, home)) + ")"
	}
	if place.Problem != "" {
		return paint.red("✗") + " " + text + " - " + clean(place.Problem)
	}
	if !place.Found {
		return paint.red("✗") + " " + text + " - not found"
	}
	return paint.green("✓") + " " + text
}

// homely is a path as people write it, with ~ for the home folder.
func homely(path, home string) string {
	if rest, ok := strings.CutPrefix(path, home+string(filepath.Separator)); ok && home != "" {
		return "~/" + filepath.ToSlash(rest)
	}
	return path
}

func newConfigSources(f *flags) *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:   "sources",
		Short: "List where servers are described, and how many were found",
		Long: `List where servers are described, in the order in which they are read: of two
entries with one name the later one counts, but a project's only where nothing
else has its name. A source that is not there is skipped.` + exits,
		Example: `  dockgate config sources
  dockgate config sources --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			options, err := f.options()
			if err != nil {
				return err
			}
			places, err := setup.Places(cmd.Context(), options.Inputs)
			if err != nil {
				return err
			}
			return out.print(cmd, map[string]any{"sources": places}, func() error {
				lines, paint := []string{fmt.Sprintf("Sources (%d):", len(places))}, paintFor(cmd.OutOrStdout())
				for _, place := range places {
					line := "  " + describePlace(paint, place, options.Home)
					if place.Found {
						line += " - " + plural(place.Servers, "server")
					}
					if place.From != "" {
						line += ", named in " + clean(homely(place.From, options.Home))
					}
					lines = append(lines, line)
				}
				_, err := fmt.Fprintln(cmd.OutOrStdout(), strings.Join(lines, "\n"))
				return err
			})
		},
	}
	out.flag(cmd)
	return cmd
}

func newConfigSchema() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of the configuration file",
		Long: `Print the JSON Schema of the configuration file, for editors. A file names it in
its first line: # yaml-language-server: $schema=PATH` + exits,
		Example: "  dockgate config schema > dockgate.schema.json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			schema, err := policy.Schema()
			if err != nil {
				return err
			}
			return writeJSON(cmd.OutOrStdout(), schema)
		},
	}
}

func newConfigValidate(f *flags) *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:   "validate [FILE]",
		Short: "Check the configuration, and name rules without effect",
		Long: `Check the configuration, the project's files, and all catalogs and sources that
they name. All mistakes are said at once, with file and line. Without a mistake
it names the tool rules, and the patterns in them, that change nothing for the
tools that are known. With FILE, that is the configuration.` + exits,
		Example: `  dockgate config validate
  dockgate config validate dockgate.yaml --json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && !f.isProjectFile(args[0]) {
				f.config = args[0]
			}
			problems, err := f.mistakes(cmd.Context())
			if err != nil {
				return err
			}
			var idle []rules.Idle
			if len(problems) == 0 {
				if err := f.use(cmd.Context(), func(d *daemon.Daemon) error {
					idle, err = idleRules(cmd.Context(), d)
					return err
				}); err != nil {
					return err
				}
			}
			return printValidation(cmd, out, problems, idle)
		},
	}
	out.flag(cmd)
	return cmd
}

// isProjectFile reports that a file is one that the working directory's
// project narrows with.
func (f *flags) isProjectFile(path string) bool {
	options, err := f.around()
	if err != nil {
		return false
	}
	named, err := os.Stat(path)
	return err == nil && slices.ContainsFunc(options.ProjectFiles(), func(file string) bool {
		found, err := os.Stat(file)
		return err == nil && os.SameFile(named, found)
	})
}

// mistakes returns all that is wrong with the configuration, a line each. The
// error is that it cannot be read at all.
func (f *flags) mistakes(ctx context.Context) ([]string, error) {
	options, err := f.around()
	if err != nil {
		return nil, err
	}
	var wrong error
	options.Config, wrong = f.loadConfig(options.Home)
	if errors.Is(wrong, os.ErrNotExist) {
		return nil, wrong
	}
	_, err = setup.Places(ctx, options.Inputs) // with what could be read of the configuration
	if wrong = errors.Join(wrong, err); wrong == nil {
		return nil, nil
	}
	var lines []string
	for line := range strings.SplitSeq(wrong.Error(), "\n") {
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	slices.SortStableFunc(lines, func(a, b string) int {
		fileA, lineA := placed(a)
		fileB, lineB := placed(b)
		return cmp.Or(cmp.Compare(fileA, fileB), cmp.Compare(lineA, lineB))
	})
	return lines, nil
}

var place = regexp.MustCompile(`^(.*?):(\d+): `)

// placed returns the file and the line that a mistake begins with.
func placed(mistake string) (file string, line int) {
	found := place.FindStringSubmatch(mistake)
	if found == nil {
		return mistake, 0
	}
	line, err := strconv.Atoi(found[2])
	if err != nil {
		return mistake, 0
	}
	return found[1], line
}

// idleRules are the rules and patterns without effect on all tools of the
// catalogs that are known.
func idleRules(ctx context.Context, d *daemon.Daemon) ([]rules.Idle, error) {
	if d.Now().Rules.Empty() {
		return nil, nil
	}
	type known struct {
		server string
		tool   tool.Definition
	}
	var all []known
	for _, server := range d.Catalog().Servers() {
		stock, err := d.Desk.Stock(ctx, principal.Local, server.Name)
		if err != nil {
			return nil, err
		}
		for _, item := range stock.Items {
			all = append(all, known{server.Name, item.Definition})
		}
	}
	return d.Now().Rules.Idle(func(yield func(string, tool.Definition) bool) {
		for _, k := range all {
			if !yield(k.server, k.tool) {
				return
			}
		}
	}), nil
}

func printValidation(cmd *cobra.Command, out output, problems []string, idle []rules.Idle) error {
	type idleRule struct {
		Number int    `json:"number"`
		Rule   string `json:"rule"`
		Place  string `json:"place"`
		Why    string `json:"why"`
	}
	listed := make([]idleRule, len(idle))
	for i, one := range idle {
		listed[i] = idleRule{one.Number, one.Rule.String(), one.Rule.Place, one.Why}
	}
	err := out.print(cmd, struct {
		Valid    bool       `json:"valid"`
		Problems []string   `json:"problems"`
		Idle     []idleRule `json:"withoutEffect"`
	}{len(problems) == 0, append([]string{}, problems...), listed}, func() error {
		var lines []string
		for _, one := range listed {
			lines = append(lines, fmt.Sprintf("%s: rule %d (%s): %s", one.Place, one.Number, one.Rule, one.Why))
		}
		if len(problems) == 0 {
			lines = append(lines, "the configuration is valid")
		}
		for i, line := range lines {
			lines[i] = clean(line)
		}
		if len(lines) == 0 {
			return nil
		}
		_, err := fmt.Fprintln(cmd.OutOrStdout(), strings.Join(lines, "\n"))
		return err
	})
	if err == nil && len(problems) > 0 {
		err = &exitError{code: 2, err: errors.New(strings.Join(problems, "\n")), shown: out.json}
	}
	return err
}
