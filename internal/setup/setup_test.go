package setup_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/meta"
	"github.com/dockgate/dockgate/internal/policy"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/setup"
)

// inputs are those of a user without a configuration, who names one catalog.
func inputs(t *testing.T) setup.Inputs {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "catalog.yaml")
	write(t, file, "version: 1\nservers:\n  notes: {image: registry.example.com/notes:1}\n  away: {unsupported: it is away}\n")
	return setup.Inputs{
		Config: policy.Config{Catalogs: []string{file}},
		Home:   filepath.Join(dir, "home"),
		Dir:    dir,
		Env:    func(string) (string, bool) { return "", false },
	}
}

func read(t *testing.T, in setup.Inputs) *setup.Setup {
	t.Helper()
	s, err := setup.Read(t.Context(), in, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func configured(t *testing.T, in setup.Inputs, content string) setup.Inputs {
	t.Helper()
	path := filepath.Join(in.Dir, "user", "config.yaml")
	write(t, path, content)
	config, err := policy.LoadConfig(path)
	if err != nil {
		t.Fatal(err)
	}
	config.Catalogs = append(config.Catalogs, in.Config.Catalogs...)
	in.Config = config
	return in
}

func TestSources(t *testing.T) {
	in := inputs(t)
	write(t, filepath.Join(in.Home, ".docker", "mcp-servers.json"),
		`{"mcpServers": {"files": {"command": "docker", "args": ["run", "-i", "mcp/filesystem"]}, "github": {"command": "docker", "args": ["run", "-i", "x/github"]}}}`)
	write(t, filepath.Join(in.Dir, "user", "mcp-servers.yaml"),
		"servers:\n  jira: {name: Jira, connection: {type: stdio, command: uvx, args: [mcp-jira]}, tools: [{name: create_ticket, description: Create a ticket}]}\n")
	published, err := os.ReadFile("../policy/testdata/published.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s := read(t, configured(t, in, string(published)))
	type place struct {
		Type    string
		Found   bool
		Servers int
	}
	var got []place
	for _, p := range s.Places[1:] {
		got = append(got, place{p.Type, p.Found, p.Servers})
	}
	want := []place{
		{"catalog", true, 2}, {"docker-mcp", true, 2}, {"windsurf", false, 0}, {"windsurf", false, 0}, {"custom", true, 1}, {"inline", true, 2},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Places (-want +got):\n%s", diff)
	}
	for name, want := range map[string]string{"notes": "registry.example.com/mine:2", "files": "mcp/filesystem", "github": "@modelcontextprotocol/server-github"} {
		entry, err := s.Catalog.Server(name)
		if err != nil {
			t.Fatal(err)
		}
		got := entry.Image
		if entry.Program != nil {
			got = entry.Program.Package
		}
		if got != want {
			t.Errorf("Server(%s) runs %s, want %s", name, got, want)
		}
	}
	// What is configured is there to be found, before anybody has chosen it.
	if diff := cmp.Diff([]string{"files", "github", "jira", "notes"}, s.Configured); diff != "" {
		t.Errorf("Configured (-want +got):\n%s", diff)
	}
	if s.DiscoveryOff() || s.Cache().Life() != time.Hour || len(s.Rules.List()) != 1 {
		t.Errorf("discovery off %v, cache %v, rules %v", s.DiscoveryOff(), s.Cache(), s.Rules.List())
	}
}

// TestProjectNarrows holds each key to its rule: what a project may set, and
// that it cannot give anything.
func TestProjectNarrows(t *testing.T) {
	tests := []struct {
		name, user, project string
		check               func(s *setup.Setup) (got, want any)
	}{
		{"expose takes away", "expose: [meta, active]", "expose: [active, direct]", exposed("active")},
		{"expose takes all away", "", "expose: []", exposed()},
		{"nothing said", "", "quotas: {max_running: 4}", exposed("meta", "dynamic", "active")},
		{"discovery off", "", "discovery: {enabled: false}", exposed("dynamic", "active")},
		{"discovery stays off", "discovery: {enabled: false}", "discovery: {enabled: true}", exposed("dynamic", "active")},
		{"cache off", "", "discovery: {cache: {enabled: false}}", func(s *setup.Setup) (any, any) { return s.Cache().Off(), true }},
		{"cache stays off", "discovery: {cache: {enabled: false}}", "discovery: {cache: {enabled: true}}", func(s *setup.Setup) (any, any) { return s.Cache().Off(), true }},
		{"cache shorter", "discovery: {cache: {ttl: 1m}}", "discovery: {cache: {ttl: 5}}", func(s *setup.Setup) (any, any) { return s.Cache().Life(), 5 * time.Second }},
		{"cache not longer", "discovery: {cache: {ttl: 60}}", "discovery: {cache: {ttl: 2h}}", func(s *setup.Setup) (any, any) { return s.Cache().Life(), time.Minute }},
		{"anticipate off", "", "anticipate: false", func(s *setup.Setup) (any, any) { return s.Anticipates(), false }},
		{"anticipate stays off", "anticipate: false", "anticipate: true", func(s *setup.Setup) (any, any) { return s.Anticipates(), false }},
		{"servers are added", "", "discovery: {servers: {own: {image: a/b}}}", image("own", "a/b")},
		{"the user's server wins", "discovery: {servers: {own: {image: c/d}}}", "discovery: {servers: {own: {image: a/b}}}", image("own", "c/d")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := inputs(t)
			write(t, filepath.Join(in.Dir, "dockgate.yaml"), tt.project)
			got, want := tt.check(read(t, configured(t, in, tt.user)))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s narrowed by %s (-want +got):\n%s", tt.user, tt.project, diff)
			}
		})
	}
}

func exposed(groups ...meta.Group) func(s *setup.Setup) (any, any) {
	return func(s *setup.Setup) (any, any) {
		return append([]meta.Group{}, s.ExposedTo(principal.Local)...), append([]meta.Group{}, groups...)
	}
}

func image(server, want string) func(s *setup.Setup) (any, any) {
	return func(s *setup.Setup) (any, any) {
		entry, err := s.Catalog.Server(server)
		if err != nil {
			return err.Error(), want
		}
		return entry.Image, want
	}
}

func TestProjectRefused(t *testing.T) {
	tests := []struct{ content, want string }{
		{"quotas: {max_running: 2}\napproval: {mode: all}", "dockgate.yaml:2: approval: is the user's to say; a project can only narrow"},
		{"catalogs: [x]", ":1: catalogs: is the user's"},
		{"limits: {memory: 1GB}", ":1: limits: is the user's"},
		{"timeouts: {call: 1h}", ":1: timeouts: is the user's"},
		{"roles: {a: {approve: true}}", ":1: roles: is the user's"},
		{"access: {local_role: owner}", ":1: access: is the user's"},
		{"http: {url: 'https://a.example'}", ":1: http: is the user's"},
		{"install: {env: {A: b}}", ":1: install: is the user's"},
		{"relay: a/b", ":1: relay: is the user's"},
		{"patience: 1h", ":1: patience: is the user's"},
		{"prefix: none", ":1: prefix: is the user's"},
		{"lists: {tools: 1}", ":1: lists: is the user's"},
		{"word: 1", ":1: word: unknown field"},
		{"expose: [all]", `:1: expose: unknown group "all"`},
		{"discovery: {sources: [{type: custom, path: ../outside.yaml}]}", ":1: discovery.sources: ../outside.yaml is not in the project's folder"},
		{"discovery: {sources: [{type: custom, path: ~/.claude.json}]}", "~/.claude.json is not in the project's folder"},
		{"discovery: {sources: [{type: custom, path: /etc/mcp.yaml}]}", "/etc/mcp.yaml is not in the project's folder"},
		{"discovery: {sources: [{type: custom, path: link.yaml}]}", "link.yaml is not in the project's folder"},
		{"discovery: {sources: [{type: claude-desktop}]}", "claude-desktop has no place in a project"},
	}
	for _, tt := range tests {
		in := inputs(t)
		in.Home = t.TempDir()
		write(t, filepath.Join(in.Home, "other.yaml"), "servers: {}")
		if err := os.Symlink(filepath.Join(in.Home, "other.yaml"), filepath.Join(in.Dir, "link.yaml")); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(in.Dir, "dockgate.yaml"), tt.content)
		_, err := setup.Read(t.Context(), in, nil)
		var mistake *policy.ConfigError
		if !errors.As(err, &mistake) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Read() with %q = %v, want %s", tt.content, err, tt.want)
		}
	}
}

func TestProjectSources(t *testing.T) {
	in := inputs(t)
	write(t, filepath.Join(in.Dir, ".dockgate", "config.yaml"), "discovery: {sources: [{type: vscode}, {type: custom, path: ./more.yaml}, {type: cursor}]}")
	write(t, filepath.Join(in.Dir, ".vscode", "mcp.json"), `{"servers": {"one": {"command": "npx", "args": ["-y", "one"]}}}`)
	write(t, filepath.Join(in.Dir, "more.yaml"), "servers: {two: {connection: {command: uvx, args: [two]}}}")
	s := read(t, in)
	if len(s.Configured) > 0 {
		t.Errorf("Configured = %v, want nothing that only the project has chosen", s.Configured)
	}
	for name, want := range map[string]string{"one": filepath.Join(in.Dir, ".vscode", "mcp.json"), "two": filepath.Join(in.Dir, "more.yaml")} {
		entry, err := s.Catalog.Server(name)
		if err != nil || entry.Origin.Kind != catalog.Project || entry.Origin.Catalog != want {
			t.Errorf("Server(%s) is of %v, %v, want the project's %s", name, entry.Origin, err, want)
		}
	}
}

// What a project calls by a name of the built-in catalog or of the user takes
// nobody's place: who has added that name has not added the project's.
func TestProjectTakesNoName(t *testing.T) {
	const others = "{demo: {image: x/y, network: full}, notes: {image: x/y}, own: {image: a/b}}"
	tests := []struct{ name, user, file, content string }{
		{"inline", "", "dockgate.yaml", "discovery: {servers: " + others + "}"},
		{"a source of the project", "", "dockgate.yaml", "discovery: {sources: [{type: custom, path: ./more.yaml}]}"},
		{"a client's file in the project", "discovery: {sources: [{type: cursor}]}", ".cursor/mcp.json", `{"mcpServers": {
			"demo": {"command": "docker", "args": ["run", "-i", "x/y"]}, "notes": {"command": "docker", "args": ["run", "-i", "x/y"]},
			"own": {"command": "docker", "args": ["run", "-i", "a/b"]}}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := inputs(t)
			write(t, filepath.Join(in.Dir, "more.yaml"), "version: 1\nservers: "+others+"\n")
			write(t, filepath.Join(in.Dir, tt.file), tt.content)
			s := read(t, configured(t, in, tt.user))
			for name, want := range map[string]catalog.OriginKind{"demo": catalog.BuiltIn, "notes": catalog.User, "own": catalog.Project} {
				if entry, err := s.Catalog.Server(name); err != nil || entry.Origin.Kind != want {
					t.Errorf("Server(%s) is of %v, %v, want %s", name, entry.Origin, err, want)
				}
			}
			said := map[string]catalog.OriginKind{}
			for _, note := range s.Notes {
				if note.Kind == "server" && note.Loser.Kind == catalog.Project {
					said[note.Name] = note.Winner.Kind
				}
			}
			if diff := cmp.Diff(map[string]catalog.OriginKind{"demo": catalog.BuiltIn, "notes": catalog.User}, said); diff != "" {
				t.Errorf("Notes of the project's servers (-want +got):\n%s", diff)
			}
		})
	}
}

// A client's own file in the project is the project's, though the user names
// the client.
func TestSourceInProject(t *testing.T) {
	in := inputs(t)
	write(t, filepath.Join(in.Dir, ".cursor", "mcp.json"), `{"mcpServers": {"one": {"command": "npx", "args": ["-y", "one"]}}}`)
	write(t, filepath.Join(in.Home, ".cursor", "mcp.json"), `{"mcpServers": {"two": {"command": "npx", "args": ["-y", "two"]}}}`)
	s := read(t, configured(t, in, "discovery: {sources: [{type: cursor}]}"))
	if diff := cmp.Diff([]string{"two"}, s.Configured); diff != "" {
		t.Errorf("Configured (-want +got):\n%s", diff)
	}
	for name, want := range map[string]catalog.OriginKind{"one": catalog.Project, "two": catalog.User} {
		if entry, err := s.Catalog.Server(name); err != nil || entry.Origin.Kind != want {
			t.Errorf("Server(%s) is of %v, %v, want %s", name, entry.Origin, err, want)
		}
	}
}

func TestSettings(t *testing.T) {
	in := inputs(t)
	write(t, filepath.Join(in.Dir, "dockgate.yaml"), "quotas:\n  max_running: 2\n  max_remote: 9\nanticipate: true\nexpose: [meta]\n")
	in = configured(t, in, "limits:\n  memory: 300MB\nquotas: {max_concurrent_mcps: 4}\ninstall: {env: {TOKEN: hidden}}\nexpose: [meta, active]\n"+
		"roles:\n  guest:\n    servers: [git, files]\n    tools:\n      - pattern: ['*read*'] # only\n        enabled: true\n    quotas: {max_running: 1}\naccess: {default_role: guest}\n")
	user, project := in.Config.File, filepath.Join(in.Dir, "dockgate.yaml")
	want := map[string]policy.Setting{
		"limits.memory":                  {Value: "300MB", From: user + ":2"},
		"limits.cpus":                    {Value: 1.0, From: "built-in"},
		"quotas.max_running":             {Value: 2, From: project + ":2"},
		"quotas.max_remote":              {Value: 2, From: "built-in"},
		"anticipate":                     {Value: true, From: "built-in"},
		"expose":                         {Value: []string{"meta"}, From: project + ":5"},
		"install.env":                    {Value: 1, From: user + ":4"},
		"timeouts.idle":                  {Value: "5m", From: "built-in"},
		"http.rate":                      {Value: 500, From: "built-in"},
		"http.session_timeout":           {Value: "1h", From: "built-in"},
		"quotas.max_total_memory":        {Value: "none", From: "built-in"},
		"roles.guest.servers":            {Value: []string{"git", "files"}, From: user + ":8"},
		"roles.guest.tools":              {Value: []string{`{"enabled":true,"pattern":["*read*"]}`}, From: user + ":9"},
		"access.default_role":            {Value: "guest", From: user + ":13"},
		"roles.guest.quotas.max_running": {Value: 1, From: user + ":12"},
		"discovery.cache.ttl":            {Value: 3600, From: "built-in"},
	}
	got := map[string]policy.Setting{}
	all := read(t, in).Settings()
	for _, s := range all {
		key := s.Key
		s.Key = ""
		if _, ok := want[key]; ok {
			got[key] = s
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Settings() (-want +got):\n%s", diff)
	}
	if encoded, err := json.Marshal(all); err != nil || strings.Contains(string(encoded), "hidden") {
		t.Errorf("Settings() = %s, %v, want no values of variables", encoded, err)
	}
}
