package manifest_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	builtin "github.com/dockgate/dockgate/catalog"
	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/catalog/catalogtest"
	"github.com/dockgate/dockgate/internal/catalog/manifest"
)

func around(t testing.TB, entries string) catalog.Surroundings {
	t.Helper()
	file, err := catalog.Parse(catalog.Origin{Catalog: "known"}, []byte(entries))
	if err != nil {
		t.Fatal(err)
	}
	merged, _ := catalog.Merge(file)
	return catalog.Surroundings{OS: "linux", Known: func(name string) (catalog.Server, bool) {
		s, err := merged.Server(name)
		return s, err == nil
	}}
}

const known = `
version: 1
servers:
  github:
    title: GitHub
    description: Theirs
    image: example/github
    network: full
    secrets: [{name: github.token, env: GITHUB_PERSONAL_ACCESS_TOKEN, from: GITHUB_TOKEN, instructions: Somewhere}]
  later: {unsupported: not yet}
`

func read(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestParse(t *testing.T) {
	file, err := manifest.Parse(catalog.Origin{Catalog: "manifest.yaml"}, read(t, "manifest.yaml"), around(t, known))
	if err != nil {
		t.Fatal(err)
	}
	catalogtest.Entries(t, "testdata/manifest.golden", file.Servers)
	cli := []catalog.CLI{{
		Name: "git", Description: "Git version control CLI", Keywords: []string{"git", "commits"}, Origin: catalog.Origin{Catalog: "manifest.yaml", Line: 3},
		CheckCommand: []string{"git", "--version"}, HelpCommand: []string{"git", "--help"}, PreferMCPFor: []string{"github issues"}, Examples: []string{"git log --oneline"},
	}}
	if diff := cmp.Diff(cli, file.CLIs); diff != "" {
		t.Errorf("CLIs (-want +got):\n%s", diff)
	}
	if want := ".mcp-gateway/discovery_queue.json"; file.DiscoveryQueue != want {
		t.Errorf("DiscoveryQueue = %q, want %q", file.DiscoveryQueue, want)
	}
}

func TestMistakes(t *testing.T) {
	_, err := manifest.Parse(catalog.Origin{Catalog: "mistakes.yaml"}, read(t, "mistakes.yaml"), catalog.Surroundings{})
	catalogtest.Mistakes(t, "testdata/mistakes.golden", err)
}

// A project's manifest runs nothing outside of a container, and writes nothing
// outside of the project.
func TestProject(t *testing.T) {
	project := catalog.Origin{Catalog: "m", Kind: catalog.Project}
	for text, want := range map[string]string{
		"cli_alternatives: {git: {check_command: [git]}}": "a project's file cannot name commands",
		"discovery_queue_path: ../../queue.json":          "leads out of the project",
		"discovery_queue_path: /etc/queue.json":           "leads out of the project",
	} {
		if _, err := manifest.Parse(project, []byte("version: \"1.0\"\n"+text), catalog.Surroundings{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%q of a project) = %v, want %q", text, err, want)
		}
	}
}

// The manifest in which this format was first described is not ours, and not
// everywhere.
func TestFirstManifest(t *testing.T) {
	data, err := os.ReadFile(catalogtest.Shared(t, "seeds", "1-capability-provisioning.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(data), "```yaml\nversion: \"1.0\"")
	text, _, closed := strings.Cut(text, "```")
	if !found || !closed {
		t.Fatal("the text holds no manifest")
	}
	file, err := manifest.Parse(catalog.Origin{Catalog: "manifest.yaml"}, []byte("version: \"1.0\""+text), around(t, string(builtin.Servers())))
	if err != nil {
		t.Fatal(err)
	}
	if len(file.Servers) != 19 || len(file.CLIs) != 8 {
		t.Errorf("Parse = %d servers and %d programs, want 19 and 8", len(file.Servers), len(file.CLIs))
	}
	for _, s := range file.Servers {
		if s.Runs() == catalog.KindUnsupported {
			t.Errorf("%s is unsupported: %s", s.Name, s.Unsupported)
		}
		switch s.Name {
		case "github":
			want := []catalog.Secret{{
				Name: "github.token", Env: "GITHUB_PERSONAL_ACCESS_TOKEN", From: "GITHUB_TOKEN", Required: true,
				Instructions: "Create at https://github.com/settings/tokens with repo scope",
			}}
			if diff := cmp.Diff(want, s.Secrets); diff != "" {
				t.Errorf("secrets of github (-want +got):\n%s", diff)
			}
		case "google-drive":
			if len(s.Secrets) != 1 || !s.Secrets[0].File || s.Secrets[0].Env != "GDRIVE_CREDENTIALS_PATH" || s.Secrets[0].From != "GOOGLE_CREDENTIALS" {
				t.Errorf("secrets of google-drive = %+v, want the path of a file", s.Secrets)
			}
		}
	}
	catalogtest.RoundTrip(t, file.Servers)
}

func FuzzParse(f *testing.F) {
	catalogtest.Seed(f, "testdata/manifest.yaml", "servers")
	catalogtest.Seed(f, "testdata/mistakes.yaml", "servers")
	here := around(f, known)
	f.Fuzz(func(t *testing.T, text string) {
		file, err := manifest.Parse(catalog.Origin{Catalog: "f"}, []byte(text), here)
		catalogtest.Check(t, text, file, err)
	})
}
