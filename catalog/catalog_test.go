package builtin_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	builtin "github.com/dockgate/dockgate/catalog"
	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/catalog/template"
)

func parse(t *testing.T) catalog.File {
	t.Helper()
	file, err := catalog.Parse(catalog.Origin{Catalog: "servers.yaml", Kind: catalog.BuiltIn}, builtin.Servers())
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// A shape is what the manifest that this catalog follows says of a server: how
// many keywords, which variable its user sets, and whether it starts by itself.
type shape struct {
	Keywords  int
	Variable  string
	AutoStart bool
}

func TestServers(t *testing.T) {
	want := map[string]shape{
		"playwright":          {8, "", true},
		"claude-in-chrome":    {8, "", true},
		"brightdata-scraper":  {8, "BRIGHTDATA_API_KEY", true},
		"brightdata-serp":     {7, "BRIGHTDATA_API_KEY", true},
		"brightdata-unlocker": {6, "BRIGHTDATA_API_KEY", false},
		"brightdata-datasets": {7, "BRIGHTDATA_API_KEY", false},
		"filesystem":          {7, "", false},
		"memory":              {6, "", false},
		"fetch":               {7, "", false},
		"sqlite":              {5, "", false},
		"puppeteer":           {5, "", false},
		"github":              {8, "GITHUB_TOKEN", false},
		"slack":               {7, "SLACK_TOKEN", false},
		"linear":              {6, "LINEAR_API_KEY", false},
		"notion":              {6, "NOTION_TOKEN", false},
		"postgres":            {5, "POSTGRES_URL", false},
		"sentry":              {6, "SENTRY_AUTH_TOKEN", false},
		"google-drive":        {6, "GOOGLE_CREDENTIALS", false},
		"context7":            {6, "", true},
		"demo":                {5, "", false},
	}
	got := make(map[string]shape)
	for _, s := range parse(t).Servers {
		entry := shape{Keywords: len(s.Keywords), AutoStart: s.AutoStart}
		for _, secret := range s.Secrets {
			entry.Variable = secret.Variable()
			if secret.Instructions == "" || !secret.Required {
				t.Errorf("secret %q of %q = %+v, want a required one with instructions", secret.Name, s.Name, secret)
			}
		}
		got[s.Name] = entry
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("servers (-want +got):\n%s", diff)
	}
}

// Nothing that the catalog mounts is chosen by the catalog: each host path
// comes whole from a setting, so none can be the root.
func TestMountsComeFromSettings(t *testing.T) {
	for _, s := range parse(t).Servers {
		for _, m := range s.Mounts {
			for _, settings := range []map[string]any{nil, {"dir": "/", "paths": []any{"/"}}} {
				if settings == nil {
					sources, err := template.Expand(m.Source, map[string]any{"config": settings})
					if err != nil || len(sources) != 0 {
						t.Errorf("Expand(%q) without settings = %q, %v, want nothing: %s would mount it unasked", m.Source, sources, err, s.Name)
					}
					continue
				}
				for name := range settings {
					if err := s.CheckSettings(map[string]any{name: settings[name]}); err == nil {
						t.Errorf("CheckSettings(%s=%v) of %q = nil, want the root refused", name, settings[name], s.Name)
					}
				}
			}
		}
	}
}

func TestNetworks(t *testing.T) {
	var offline []string
	for _, s := range parse(t).Servers {
		if s.Image != "" && s.Network.Mode == catalog.NetworkNone {
			offline = append(offline, s.Name)
		}
	}
	slices.Sort(offline)
	if diff := cmp.Diff([]string{"demo", "filesystem", "memory", "sqlite"}, offline); diff != "" {
		t.Errorf("servers without network (-want +got):\n%s", diff)
	}
}

func TestBrowsersHaveRoom(t *testing.T) {
	want := catalog.Limits{Memory: 2 << 30, PIDs: 1024, Shm: 1 << 30, Tmp: 1 << 30}
	merged, _ := catalog.Merge(parse(t))
	for _, name := range []string{"playwright", "puppeteer"} {
		s, err := merged.Server(name)
		if err != nil {
			t.Fatal(err)
		}
		if s.Limits != want || s.Timeouts.Call.Minutes() != 5 {
			t.Errorf("limits of %q = %+v, call %s, want %+v, call 5m", name, s.Limits, s.Timeouts.Call, want)
		}
	}
}

func TestDemo(t *testing.T) {
	merged, _ := catalog.Merge(parse(t))
	s, err := merged.Server("demo")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range s.Tools {
		names = append(names, tool.Name)
	}
	if diff := cmp.Diff([]string{"echo", "add", "sleep", "sandbox"}, names); diff != "" {
		t.Errorf("tools of demo (-want +got):\n%s", diff)
	}
}

func TestCLIs(t *testing.T) {
	want := map[string]int{"git": 6, "docker": 5, "kubectl": 6, "node": 5, "python": 3, "aws": 6, "gcloud": 4, "az": 3}
	got := make(map[string]int)
	for _, cli := range parse(t).CLIs {
		got[cli.Name] = len(cli.Keywords)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("command-line programs (-want +got):\n%s", diff)
	}
}
