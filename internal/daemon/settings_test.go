package daemon_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/audit"
	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/daemon"
	"github.com/dockgate/dockgate/internal/daemon/daemontest"
	"github.com/dockgate/dockgate/internal/plan"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/store"
)

const entries = `version: 1
servers:
  notes:
    image: registry.example.com/notes:1
    config:
      type: object
      properties:
        dirs: {type: array, items: {type: string}}
        depth: {type: integer}
        style: {type: object, properties: {font: {type: string}, size: {type: integer}}}
      required: [dirs]
    mounts:
      - {source: "{{config.dirs|into}}", target: "{{config.dirs|into}}"}
  away:
    unsupported: it is away
`

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// pulled makes the image of the notes known, as if it had been pulled.
func pulled(t *testing.T, d *daemon.Daemon, digest string) {
	t.Helper()
	image := sandbox.Image{
		Ref:    "registry.example.com/notes:1",
		Pin:    sandbox.Pin{Kind: sandbox.RepoDigest, Digest: digest, Platform: "linux/amd64"},
		Config: sandbox.ImageConfig{Entrypoint: []string{"/notes"}},
	}
	if err := d.Store.PutImage(t.Context(), store.ResolvedImage{Image: image}); err != nil {
		t.Fatal(err)
	}
	d.Planner.ForgetAll()
}

func decide(t *testing.T, d *daemon.Daemon, question approval.Question) {
	t.Helper()
	err := d.Book.Decide(t.Context(), question, approval.Decision{
		Answer: approval.Approve, Channel: "terminal", By: principal.Local,
	})
	if err != nil {
		t.Fatal(err)
	}
}

func kinds(t *testing.T, state string) []string {
	t.Helper()
	records, err := audit.Tail(t.Context(), daemon.AuditDir(state), -1)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, r := range records {
		found = append(found, string(r.Kind))
	}
	return found
}

// finding returns what is said of a subject.
func TestConfigure(t *testing.T) {
	d := daemontest.Open(t, daemontest.Options(t, entries))
	dir := t.TempDir()
	pulled(t, d, "sha256:"+strings.Repeat("1", 64))
	steps := []struct {
		assignments []string
		want        string // the settings then
		err         string
	}{
		{nil, ``, `setting "dirs" is required`},
		{[]string{"dirs=" + dir, "depth=9007199254740993"}, `{"depth":9007199254740993,"dirs":["` + dir + `"]}`, ""},
		{[]string{"depth=2"}, `{"depth":2,"dirs":["` + dir + `"]}`, ""},
		{[]string{"style.font=serif"}, `{"depth":2,"dirs":["` + dir + `"],"style":{"font":"serif"}}`, ""},
		{[]string{"style.size=12"}, `{"depth":2,"dirs":["` + dir + `"],"style":{"font":"serif","size":12}}`, ""},
		{[]string{"style.font=", "depth="}, `{"dirs":["` + dir + `"],"style":{"size":12}}`, ""},
		{[]string{"depth=", "style.font="}, ``, `setting "depth" is not set; setting "style.font" is not set`},
		{[]string{"depth=two"}, ``, `setting "depth" is "two", want a whole number`},
		{[]string{"dirs="}, ``, `setting "dirs" is required`},
		{[]string{"dirs=/"}, ``, `mounts[0].source`},
		{nil, `{"dirs":["` + dir + `"],"style":{"size":12}}`, ""},
	}
	kept := ""
	for _, step := range steps {
		_, err := d.Configure(t.Context(), principal.Local, "notes", step.assignments)
		if step.err != "" {
			if err == nil || !strings.Contains(err.Error(), step.err) {
				t.Errorf("Configure(%q) = %v, want an error with %q", step.assignments, err, step.err)
			}
		} else {
			if err != nil {
				t.Errorf("Configure(%q): %v", step.assignments, err)
			}
			kept = step.want
		}
		settings, err := d.Active.Settings(t.Context(), principal.Local, "notes")
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if settings != nil {
			encoded, err := json.Marshal(settings)
			if err != nil {
				t.Fatal(err)
			}
			got = string(encoded)
		}
		if got != kept {
			t.Errorf("after Configure(%q) the settings are %s, want %s", step.assignments, got, kept)
		}
	}
}

func TestConfigureRefuses(t *testing.T) {
	d := daemontest.Open(t, daemontest.Options(t, entries))
	var unknown *catalog.UnknownServerError
	if _, err := d.Configure(t.Context(), principal.Local, "nots", nil); !errors.As(err, &unknown) {
		t.Errorf("Configure(nots) = %v, want that it is unknown", err)
	}
	var unsupported *plan.UnsupportedError
	if _, err := d.Configure(t.Context(), principal.Local, "away", nil); !errors.As(err, &unsupported) {
		t.Errorf("Configure(away) = %v, want that it cannot run", err)
	}
	if active, err := d.Active.Active(t.Context(), principal.Local); err != nil || len(active) > 0 {
		t.Errorf("active = %q, %v, want none", active, err)
	}
}

func TestDeactivate(t *testing.T) {
	d := daemontest.Open(t, daemontest.Options(t, entries))
	var inactive *daemon.InactiveError
	if err := d.Deactivate(t.Context(), principal.Local, "notes"); !errors.As(err, &inactive) {
		t.Errorf("Deactivate(inactive) = %v, want that it is not active", err)
	}
	if _, err := d.Configure(t.Context(), principal.Local, "notes", []string{"dirs=/srv"}); err != nil {
		t.Fatal(err)
	}
	err := d.Deactivate(t.Context(), principal.Local, "nots")
	if want := `server "nots" is not active; nearest of those that are: notes`; err == nil || err.Error() != want {
		t.Errorf("Deactivate(nots) = %v, want %s", err, want)
	}
	if err := d.Deactivate(t.Context(), principal.Local, "notes"); err != nil {
		t.Errorf("Deactivate(notes): %v", err)
	}
	if active, err := d.Active.Active(t.Context(), principal.Local); err != nil || len(active) > 0 {
		t.Errorf("active = %q, %v, want none", active, err)
	}
}

func TestStandingAndAsk(t *testing.T) {
	d := daemontest.Open(t, daemontest.Options(t, entries))
	dir := t.TempDir()
	standing := func(server string, wantActive bool, want daemon.State) {
		t.Helper()
		got, err := d.Standing(t.Context(), principal.Local, server)
		if err != nil || got.Active != wantActive || got.State != want {
			t.Errorf("Standing(%q) = %v, %q (%v), %v, want %v, %q", server, got.Active, got.State, got.Reason, err, wantActive, want)
		}
	}
	standing("elsewhere", false, daemon.StateUnknown)
	standing("away", false, daemon.StateUnsupported)
	standing("notes", false, daemon.StateUnresolved)
	pulled(t, d, "sha256:"+strings.Repeat("1", 64))
	standing("notes", false, daemon.StateUnset)
	if _, err := d.Configure(t.Context(), principal.Local, "notes", []string{"dirs=" + dir}); err != nil {
		t.Fatal(err)
	}
	standing("notes", true, daemon.StateMissing)

	ask := func() *approval.Question {
		t.Helper()
		made, err := d.Planner.Plan(t.Context(), principal.Local, "notes")
		if err != nil {
			t.Fatal(err)
		}
		question, err := d.Ask(t.Context(), principal.Local, made)
		if err != nil {
			t.Fatal(err)
		}
		return question
	}
	first := ask()
	if again := ask(); first == nil || again == nil || again.ID != first.ID {
		t.Fatalf("Ask twice = %v, %v, want the same question", first, again)
	}
	for _, name := range []string{"notes", first.ID} {
		if got := d.Pending(name); len(got) != 1 || got[0].ID != first.ID {
			t.Errorf("Pending(%q) = %v, want the question", name, got)
		}
	}
	if got := d.Pending("away"); got != nil {
		t.Errorf("Pending(away) = %v, want none", got)
	}
	decide(t, d, *first)
	standing("notes", true, daemon.StateApproved)
	if got := ask(); got != nil {
		t.Errorf("Ask about what is approved = %v, want nothing", got)
	}
	if got := d.Pending("notes"); got != nil {
		t.Errorf("Pending(answered) = %v, want none", got)
	}

	pulled(t, d, "sha256:"+strings.Repeat("2", 64))
	standing("notes", true, daemon.StateChanged)
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	d.Planner.ForgetAll()
	standing("notes", true, daemon.StateRefused)
}

// Looking leaves no trace in the record, deciding does.
func TestRecord(t *testing.T) {
	o := daemontest.Options(t, entries)
	d := daemontest.Open(t, o)
	pulled(t, d, "sha256:"+strings.Repeat("1", 64))
	if _, err := d.Configure(t.Context(), principal.Local, "notes", []string{"dirs=" + t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	made, err := d.Planner.Plan(t.Context(), principal.Local, "notes")
	if err != nil {
		t.Fatal(err)
	}
	question, err := d.Ask(t.Context(), principal.Local, made)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(daemon.AuditDir(o.State)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("before a decision there is a record: %v", err)
	}
	decide(t, d, *question)
	want := []string{"open", "approval"}
	if diff := cmp.Diff(want, kinds(t, o.State)); diff != "" {
		t.Errorf("records mismatch (-want +got):\n%s", diff)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := d.Audit.Open(); err == nil {
		t.Error("Open after Close opens the record again")
	}
}

// What the quotas say holds for plans, in the folder of the project too.
func TestPlanWithinQuotas(t *testing.T) {
	o := daemontest.Options(t, entries)
	o.Config.Limits.PIDs = 7
	write(t, filepath.Join(o.Dir, ".dockgate", "mcp-limits.yaml"), "quotas: {max_memory_per_mcp: 100MB}")
	d := daemontest.Open(t, o)
	pulled(t, d, "sha256:"+strings.Repeat("1", 64))
	if _, err := d.Configure(t.Context(), principal.Local, "notes", []string{"dirs=" + t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	made, err := d.Planner.Plan(t.Context(), principal.Local, "notes")
	if err != nil || made.Spec.Limits.Memory != 100<<20 || made.Spec.Limits.PIDs != 7 {
		t.Errorf("Plan() = %+v, %v, want 100 MB and 7 processes", made.Spec.Limits, err)
	}
	write(t, o.Config.Catalogs[0], strings.Replace(entries, "    config:\n", "    limits: {memory: 2GB}\n    config:\n", 1))
	o.State = filepath.Join(t.TempDir(), "state")
	d = daemontest.Open(t, o)
	pulled(t, d, "sha256:"+strings.Repeat("1", 64))
	var tooMuch *plan.MemoryError
	_, err = d.Configure(t.Context(), principal.Local, "notes", []string{"dirs=" + t.TempDir()})
	if !errors.As(err, &tooMuch) || !strings.HasSuffix(tooMuch.Place, "mcp-limits.yaml") {
		t.Errorf("Configure() = %v, want a MemoryError that names the file", err)
	}
	standing, err := d.Standing(t.Context(), principal.Local, "notes")
	if err != nil || standing.State != daemon.StateRefused {
		t.Errorf("Standing() = %+v, %v, want %s", standing, err, daemon.StateRefused)
	}
}
