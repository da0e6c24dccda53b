// Package doctor looks at what a gateway needs, and says how well each of it is
// and what the user can do.
//
// It decides what is good, poor or broken. It changes nothing, but for what is
// left of gateways that have ended; what cannot be looked at is a finding too.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/docker/go-units"

	"github.com/dockgate/dockgate/internal/audit"
	"github.com/dockgate/dockgate/internal/daemon"
	"github.com/dockgate/dockgate/internal/docker"
	"github.com/dockgate/dockgate/internal/docker/reach"
	"github.com/dockgate/dockgate/internal/presence"
	"github.com/dockgate/dockgate/internal/setup"
	"github.com/dockgate/dockgate/internal/store"
)

// A Health is how well something is.
type Health string

// The healths. What is Poor works, but not as it could; what is Broken keeps
// the gateway from working.
const (
	Good   Health = "good"
	Poor   Health = "poor"
	Broken Health = "broken"
)

// A Finding is what an examination says of one thing.
type Finding struct {
	// Subject is what was looked at, such as "engine".
	Subject string `json:"subject"`
	Health  Health `json:"health"`
	Text    string `json:"text"`
	// Hint says what the user can do, if anything.
	Hint string `json:"hint,omitempty"`
}

// NewFinding returns what an error says of a subject: Broken, with the error's
// hint, or Good with the text if there is no error.
func NewFinding(subject, text string, err error) Finding {
	if err == nil {
		return Finding{Subject: subject, Health: Good, Text: text}
	}
	finding := Finding{Subject: subject, Health: Broken, Text: err.Error()}
	var hinted interface{ Hint() string }
	if errors.As(err, &hinted) {
		finding.Hint = hinted.Hint()
	}
	return finding
}

// Examine looks at all that a gateway with these options needs: catalogs,
// state folder, audit record, disk and engine. What cannot be looked at is a
// finding, so Examine has no error.
func Examine(ctx context.Context, o daemon.Options) []Finding {
	findings := []Finding{examineCatalogs(ctx, o)}
	stateID, state := examineState(ctx, o)
	findings = append(findings, state...)
	return append(findings, examineEngine(ctx, o, stateID)...)
}

func examineCatalogs(ctx context.Context, o daemon.Options) Finding {
	now, err := setup.Read(ctx, o.Inputs, nil)
	if err != nil {
		return NewFinding("catalogs", "", err)
	}
	text := fmt.Sprintf("%d servers, from the built-in catalog", len(now.Catalog.Servers()))
	for _, place := range now.Places[1:] {
		if text += ", " + place.Path; !place.Found {
			text += " (not found)"
		}
	}
	if len(now.Notes) > 0 {
		text += fmt.Sprintf("; %d entries are overridden", len(now.Notes))
	}
	return NewFinding("catalogs", text, nil)
}

// examineState returns the id of the state folder too, empty if it has none.
func examineState(ctx context.Context, o daemon.Options) (id string, findings []Finding) {
	dir := o.State
	db, err := store.Open(ctx, dir)
	if err != nil {
		return "", []Finding{NewFinding("state", "", err)}
	}
	id = db.StateID()
	tokens, err := db.Tokens(ctx)
	gateways, unread := presence.Running(ctx, db)
	if err := errors.Join(err, unread, db.Verify(ctx), db.Close()); err != nil {
		return id, []Finding{NewFinding("state", "", err)}
	}
	findings = append(findings, NewFinding("state", dir+", database intact", nil))
	findings = append(findings, examineCallers(ctx, tokens, o.Config.Admission)...)
	for _, gateway := range gateways {
		findings = append(findings, examineGateway(gateway)...)
	}
	if disk, ok := examineDisk("disk", db.Dir()); ok {
		findings = append(findings, disk)
	}
	return id, append(findings, examineRecord(daemon.AuditDir(dir)))
}

// examineGateway says what is not as it could be with a gateway's configuration.
func examineGateway(p presence.Presence) []Finding {
	const hint = "restart the MCP client that started it"
	var all []Finding
	if p.Problem != "" {
		all = append(all, Finding{
			Subject: "reload", Health: Poor, Text: fmt.Sprintf("gateway %s goes on with an earlier configuration: %s", p.ID, p.Problem),
			Hint: "correct it, and see: dockgate config validate",
		})
	}
	if len(p.Restart) > 0 {
		all = append(all, Finding{
			Subject: "reload", Health: Poor, Text: fmt.Sprintf("gateway %s needs a restart for: %s", p.ID, strings.Join(p.Restart, ", ")), Hint: hint,
		})
	}
	return all
}

func examineRecord(dir string) Finding {
	report, err := audit.Verify(dir)
	if err != nil {
		return NewFinding("audit", "", err)
	}
	records, problems := 0, 0
	for _, chain := range report.Chains {
		records += chain.Records
		problems += len(chain.Problems)
	}
	switch {
	case !report.Intact():
		return Finding{
			Subject: "audit", Health: Broken, Text: fmt.Sprintf("the record was changed: %d problems", problems),
			Hint: "see what was changed with: dockgate audit verify",
		}
	case problems > 0:
		return Finding{
			Subject: "audit", Health: Poor, Text: fmt.Sprintf("%d records, intact; %d ended in the middle of a line", records, problems),
		}
	}
	return NewFinding("audit", fmt.Sprintf("%d records, intact", records), nil)
}

// littleDisk and noDisk are free bytes with which work gets hard, and stops.
const (
	littleDisk = 2 << 30
	noDisk     = 64 << 20
)

// examineDisk looks at the disk of a folder; ok is false if it cannot.
func examineDisk(subject, dir string) (finding Finding, ok bool) {
	free, err := freeSpace(dir)
	if err != nil {
		return Finding{}, false
	}
	finding = NewFinding(subject, fmt.Sprintf("%s free at %s", units.BytesSize(float64(free)), dir), nil)
	switch {
	case free < noDisk:
		finding.Health = Broken
	case free < littleDisk:
		finding.Health = Poor
	default:
		return finding, true
	}
	finding.Hint = `free some space, for instance with "docker image prune"`
	return finding, true
}

// examineEngine looks at the engine, also if the state folder cannot be opened
// and so has no id.
func examineEngine(ctx context.Context, o daemon.Options, stateID string) []Finding {
	engine, err := docker.Connect(ctx, o.EngineOptions(stateID))
	if err != nil {
		return []Finding{NewFinding("engine", "", err)}
	}
	findings := examineConnected(ctx, engine)
	if err := engine.Close(); err != nil { //nolint:contextcheck // it ends with its own time
		findings = append(findings, NewFinding("engine", "", err))
	}
	return findings
}

func examineConnected(ctx context.Context, engine *docker.Engine) []Finding {
	info, err := engine.Info(ctx)
	if err != nil {
		return []Finding{NewFinding("engine", "", err)}
	}
	findings := []Finding{
		NewFinding("engine", fmt.Sprintf("%s (%s), %s at %s", name(info), info.Platform, info.Version, info.Host), nil),
		NewFinding("api", fmt.Sprintf("version %s is spoken, the engine knows %s", info.API, info.EngineAPI), nil),
	}
	findings = append(findings, examineAccess(info)...)
	for _, missing := range info.Unenforced {
		findings = append(findings, Finding{
			Subject: "sandbox", Health: Poor, Text: missing, Hint: "every approval shows this as a warning",
		})
	}
	if len(info.Unenforced) == 0 {
		findings = append(findings, NewFinding("sandbox", "the engine enforces every limit", nil))
	}
	for _, warning := range info.Warnings {
		findings = append(findings, Finding{Subject: "engine", Health: Poor, Text: "it warns: " + warning})
	}
	if info.Local && isFolder(info.Root) {
		if disk, ok := examineDisk("images", info.Root); ok {
			findings = append(findings, disk)
		}
	}
	running, err := engine.Running(ctx)
	findings = append(findings, NewFinding("running", count(len(running), "container")+" of this state folder", err))
	return append(findings, examineGateways(ctx, engine)...)
}

// examineGateways names the containers of gateways that clients share.
func examineGateways(ctx context.Context, engine *docker.Engine) []Finding {
	gateways, err := engine.Gateways(ctx)
	if err != nil {
		return []Finding{NewFinding("shared", "", err)}
	}
	var findings []Finding
	for _, g := range gateways {
		finding := NewFinding("shared", fmt.Sprintf("clients share the gateway in container %s, since %s", g.Name, g.Created.Format(time.DateTime)), nil)
		if !g.Lives {
			finding.Health, finding.Text = Poor, fmt.Sprintf("container %s (%s) is what a shared gateway has left that has ended", g.Name, g.State)
			finding.Hint = "the next gateway removes it; or do it now with: dockgate doctor --sweep"
		}
		findings = append(findings, finding)
	}
	return findings
}

func name(info reach.Info) string {
	switch {
	case info.Podman:
		return "Podman"
	case info.Name != "":
		return info.Name
	}
	return "Docker"
}

// examineAccess says who may use the engine, and for what.
func examineAccess(info reach.Info) []Finding {
	var findings []Finding
	if socket := info.Socket; socket != nil {
		finding := NewFinding("socket", fmt.Sprintf("this user may use %s (mode %#o)", socket.Path, socket.Mode), nil)
		if socket.Open {
			finding.Health = Poor
			finding.Text = fmt.Sprintf("every user of this machine may use %s, which makes each of them root", socket.Path)
			finding.Hint = "sudo chmod o-rw " + socket.Path
		}
		findings = append(findings, finding)
	}
	if !info.Local {
		findings = append(findings, Finding{
			Subject: "mounts", Health: Poor, Text: "the engine is on another machine: servers that ask for folders are refused",
		})
	}
	if info.Rootless {
		findings = append(findings, NewFinding("rootless", "the engine runs without root", nil))
	}
	if info.Podman {
		findings = append(findings, Finding{
			Subject: "podman", Health: Poor, Text: "Podman is used as far as it behaves as Docker does",
		})
	}
	return findings
}

func isFolder(path string) bool {
	info, err := os.Stat(filepath.Clean(path))
	return err == nil && info.IsDir()
}

// Healthy reports whether nothing is broken.
func Healthy(findings []Finding) bool {
	return !slices.ContainsFunc(findings, func(f Finding) bool { return f.Health == Broken })
}
