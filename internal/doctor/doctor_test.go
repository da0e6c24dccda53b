package doctor_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dockgate/dockgate/internal/audit"
	"github.com/dockgate/dockgate/internal/daemon"
	"github.com/dockgate/dockgate/internal/daemon/daemontest"
	"github.com/dockgate/dockgate/internal/doctor"
)

const noServers = "version: 1\nservers: {}\n"

func finding(t *testing.T, findings []doctor.Finding, subject string) doctor.Finding {
	t.Helper()
	for _, f := range findings {
		if f.Subject == subject {
			return f
		}
	}
	t.Fatalf("nothing is said of %q: %v", subject, findings)
	return doctor.Finding{}
}

func TestExamine(t *testing.T) {
	o := daemontest.Options(t, noServers)
	d := daemontest.Open(t, o)
	if err := d.Audit.Append(audit.Record{Kind: audit.KindStart, Server: "notes"}); err != nil {
		t.Fatal(err)
	}
	findings := doctor.Examine(t.Context(), o)
	for subject, want := range map[string]string{
		"catalogs": "servers, from the built-in catalog, " + o.Config.Catalogs[0],
		"state":    o.State + ", database intact",
		"audit":    "2 records, intact",
	} {
		if got := finding(t, findings, subject); got.Health != doctor.Good || !strings.Contains(got.Text, want) {
			t.Errorf("%s: %s %q, want good with %q", subject, got.Health, got.Text, want)
		}
	}
	engine := finding(t, findings, "engine")
	if engine.Health != doctor.Broken || !strings.Contains(engine.Hint, "start the engine") {
		t.Errorf("engine: %s, hint %q, want broken with a hint", engine.Health, engine.Hint)
	}
	if doctor.Healthy(findings) {
		t.Error("healthy without an engine")
	}
}

func TestExamineBroken(t *testing.T) {
	o := daemontest.Options(t, noServers)
	d := daemontest.Open(t, o)
	if err := d.Audit.Append(audit.Record{Kind: audit.KindStart, Server: "notes"}); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(daemon.AuditDir(o.State), "*.jsonl"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files of the record: %q, %v, want one", files, err)
	}
	record, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{
		files[0]:             strings.ReplaceAll(string(record), "notes", "taken"),
		o.Config.Catalogs[0]: "version: 2\n",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	findings := doctor.Examine(t.Context(), o)
	for subject, want := range map[string]string{
		"catalogs": "catalog.yaml:1: version",
		"audit":    "the record was changed",
	} {
		got := finding(t, findings, subject)
		if got.Health != doctor.Broken || !strings.Contains(got.Text, want) || got.Hint == "" {
			t.Errorf("%s: %s %q, hint %q, want broken with %q and a hint", subject, got.Health, got.Text, got.Hint, want)
		}
	}

	// A file where the state folder should be: the engine is looked at all the same.
	o.State = o.Config.Catalogs[0]
	findings = doctor.Examine(t.Context(), o)
	if got := finding(t, findings, "state"); got.Health != doctor.Broken {
		t.Errorf("state: %s %q, want broken", got.Health, got.Text)
	}
	finding(t, findings, "engine")
}

func TestNewFinding(t *testing.T) {
	if got := doctor.NewFinding("x", "fine", nil); got.Health != doctor.Good || got.Text != "fine" {
		t.Errorf("NewFinding(no error) = %+v, want good", got)
	}
	plain := doctor.NewFinding("x", "fine", errors.New("no luck"))
	if plain.Health != doctor.Broken || plain.Text != "no luck" || plain.Hint != "" {
		t.Errorf("NewFinding(error) = %+v, want broken without a hint", plain)
	}
	hinted := doctor.NewFinding("x", "fine", &daemon.InactiveError{Server: "x"})
	if !strings.Contains(hinted.Hint, "dockgate list") {
		t.Errorf("NewFinding(error with a hint) = %+v, want the hint", hinted)
	}
}
