package e2e_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/moby/client"

	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest/probe"
	"github.com/dockgate/dockgate/internal/upstream"
)

// What dockgate plan shows, to people and to programs, is what the server
// finds when it looks, and where it stops when it pushes.
func TestPlanIsWhatTheServerFinds(t *testing.T) {
	api := needEngine(t)
	needImage(t, api, "dockgate-test/faulty")
	h := newHouse(t, `  thing:
    image: dockgate-test/faulty
    command: [/volume]
    user: "1234:2345"
    limits: {memory: 96MB, cpus: 0.5, pids: 40, shm: 8MB, tmp: 6MB}
`)
	text, err := h.command(t, "plan", "--pull", "thing")
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := h.command(t, "plan", "--json", "thing")
	if err != nil {
		t.Fatal(err)
	}
	var plan struct {
		Spec        sandbox.Spec        `json:"spec"`
		Confinement sandbox.Confinement `json:"confinement"`
	}
	if err := json.Unmarshal([]byte(encoded), &plan); err != nil {
		t.Fatal(err)
	}
	session := connect(t, h.serve(t, "--approve", "all", "--server", "thing"), upstream.Legacy)
	var seen struct{ StructuredContent probe.Report }
	var pushed struct{ StructuredContent probe.Pushed }
	for name, into := range map[string]any{"thing__look": &seen, "thing__push": &pushed} {
		raw, err := session.Call(t.Context(), "tools/call", json.RawMessage(`{"name":"`+name+`"}`), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(raw, into); err != nil || !strings.Contains(string(raw), `"structuredContent":{"`) || strings.Contains(string(raw), "isError") {
			t.Fatalf("%v: %s", err, raw)
		}
	}
	look, push, spec, always := seen.StructuredContent, pushed.StructuredContent, plan.Spec, plan.Confinement
	sizes := make(map[string]int64)
	for _, place := range spec.Tmpfs {
		sizes[place.Target] = place.Size
	}
	for _, tt := range []struct {
		what      string
		text      string // in what people see
		json, got any    // in what programs see, and what the server does
	}{
		{"memory", "memory 96MiB", spec.Limits.Memory, look.Memory},
		{"swap", "no swap", always.Swap, look.MemorySwap - look.Memory},
		{"processors", "0.5 cpus", float64(spec.Limits.NanoCPUs) / 1e9, look.CPUs},
		{"processes", "40 processes", spec.Limits.PIDs, look.PIDs},
		{"shared memory", "shared memory 8MiB", spec.Limits.Shm, push.Filled["/dev/shm"].Count},
		{"/tmp", "/tmp, at most 6MiB", sizes["/tmp"], push.Filled["/tmp"].Count},
		{"volume", "/volume, at most 6MiB", sizes["/volume"], push.Filled["/volume"].Count},
		{"open files", "16384 open files", spec.Limits.Files, look.Files},
		{"root", "root:      read only", always.ReadOnlyRoot, !look.WritableRoot},
		{"capabilities", "no capabilities", len(always.Capabilities), len(strings.Trim(look.Capabilities, "0"))},
		{"privileges", "no new privileges", always.NoNewPrivileges, look.NoNewPrivileges == "1"},
		{"seccomp", "default seccomp", always.Seccomp == "default", look.Seccomp == "2"},
		{"init", "an init process", always.Init, look.PID1 != "faulty"},
		{"user", "user:      1234:2345", spec.User, fmt.Sprintf("%d:%d", look.UID, look.GID)},
		{"network", "network:   none", string(spec.Network), map[bool]string{true: "none"}[strings.Join(look.Interfaces, " ") == "lo"]},
		{"command", "command:   /faulty /volume", spec.Command, look.Args},
		{"lifetime", "24 hours", always.LifetimeSeconds, lifetime(t, api, h)},
	} {
		if !strings.Contains(text, tt.text) {
			t.Errorf("%s: plan shows no %q:\n%s", tt.what, tt.text, text)
		}
		if diff := cmp.Diff(tt.json, tt.got); diff != "" {
			t.Errorf("%s (-plan +server):\n%s", tt.what, diff)
		}
	}
	if got := push.Processes; got.Count > spec.Limits.PIDs || got.Count < spec.Limits.PIDs/2 || got.Reason == "" {
		t.Errorf("could start %+v processes, want fewer than %d", got, spec.Limits.PIDs)
	}
	if got := push.Files; got.Count > spec.Limits.Files || got.Count < spec.Limits.Files-64 || got.Reason == "" {
		t.Errorf("could open %+v files, want a little under %d", got, spec.Limits.Files)
	}
	if push.CPUs <= 0 || push.CPUs > 0.65 {
		t.Errorf("worked for %.2f processors, want at most 0.5 and a little", push.CPUs)
	}
	for what, reason := range push.Refused {
		if reason == "" {
			t.Errorf("could %s, want it refused", what)
		}
	}
}

// lifetime is for how many seconds the engine has the house's container.
func lifetime(t *testing.T, api *client.Client, h house) int64 {
	t.Helper()
	names := left(t, api, h)
	if len(names) != 1 {
		t.Fatalf("containers = %v, want one", names)
	}
	found, err := api.ContainerInspect(t.Context(), strings.Fields(names[0])[0], client.ContainerInspectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if mounts := found.Container.Mounts; len(mounts) > 0 {
		t.Errorf("the container has %+v, want no volumes of the engine", mounts)
	}
	created, err := time.Parse(time.RFC3339Nano, found.Container.Created)
	if err != nil {
		t.Fatal(err)
	}
	expires, err := time.Parse(time.RFC3339, found.Container.Config.Labels["dockgate.expires"])
	if err != nil {
		t.Fatal(err)
	}
	return int64(expires.Sub(created).Round(time.Minute) / time.Second)
}
