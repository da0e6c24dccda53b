package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dockgate/dockgate/internal/fleet"
	"github.com/dockgate/dockgate/internal/upstream"
	"github.com/dockgate/dockgate/test/built"
	"github.com/dockgate/dockgate/test/clients"
)

// beyond lists the scenarios that no gateway can pass, by the server's image
// and the version that is tested, each with the reason; TestBeyond shows it at
// the server itself. The server of both eras passes all.
func beyond(image, version string) map[string]string {
	switch {
	case image == "conformance-legacy" && version == "2026-07-28":
		return map[string]string{
			"input-required-result-basic-elicitation": "it wants the name of a question, which has none in a session",
		}
	case image == "conformance-modern" && version == "2025-11-25":
		const reason = "the tool sends a request of its own, which its server refuses in 2026-07-28"
		return map[string]string{
			"tools-call-sampling": reason, "tools-call-elicitation": reason,
			"elicitation-sep1034-defaults": reason, "elicitation-sep1330-enums": reason,
		}
	}
	return nil
}

// The official suite finds no fault with the gateway over HTTP, in either
// version of the protocol, whichever of them the server behind it speaks, but
// for what is beyond a gateway.
func TestConformance(t *testing.T) {
	api := needEngine(t)
	installed := needClients(t)
	for _, image := range []string{"conformance-legacy", "conformance-modern", "conformance"} {
		needImage(t, api, "dockgate-test/"+image)
		t.Run(image, func(t *testing.T) {
			h := newHouse(t, "  thing: {image: dockgate-test/"+image+", isolation: capabilities}\n")
			h.learn(t, "thing")
			url := h.serveOpen(t, "--approve", "all", "--server", "thing", "--expose", "active", "--prefix", "none")
			for _, version := range []string{"2025-11-25", "2026-07-28"} {
				t.Run(version, func(t *testing.T) {
					ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
					defer cancel()
					cmd := installed.Command(ctx, installed.Conformance, "server", "--url", url, "--requirements", version)
					cmd.Dir = t.TempDir() // it writes what it has seen there
					out, err := cmd.CombinedOutput()
					_, summary, found := strings.Cut(string(out), "=== SUMMARY ===")
					if err != nil && !isExit(err, 1) || !found {
						t.Fatalf("conformance of %s: %v\n%s", version, err, out)
					}
					want := slices.Sorted(maps.Keys(beyond(image, version)))
					if diff := cmp.Diff(want, failed(summary), cmpopts.EquateEmpty()); diff != "" {
						t.Errorf("scenarios of %s that fail: -want +got:\n%s%s", version, diff, summary)
					}
					if total := regexp.MustCompile(`Total: (\d+) passed`).FindStringSubmatch(summary); total == nil || total[1] == "0" {
						t.Errorf("conformance of %s:%s", version, summary)
					}
				})
			}
		})
	}
}

// What is beyond a gateway is so because of the server: without us its tools
// fail in the same way, and the name of a question is nowhere on the wire.
func TestBeyond(t *testing.T) {
	api := needEngine(t)
	connect := func(image string, era upstream.Era, serve func(params json.RawMessage)) *upstream.Session {
		needImage(t, api, "dockgate-test/"+image)
		session, err := upstream.Connect(t.Context(), bareContainer(t, "dockgate-test/"+image), upstream.Options{
			Client: upstream.Implementation{Name: "e2e", Version: "1"}, Era: era,
			Capabilities: json.RawMessage(fleet.Capabilities), CallCapabilities: json.RawMessage(fleet.Capabilities),
			Serve: func(_ context.Context, _ string, params json.RawMessage) (json.RawMessage, error) {
				serve(params)
				return json.RawMessage(`{"action":"cancel"}`), nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = session.Close() })
		return session
	}
	t.Run("requests of its own", func(t *testing.T) {
		session := connect("conformance-modern", upstream.Modern, func(params json.RawMessage) { t.Errorf("the server asked: %s", params) })
		for _, tool := range []string{
			`"test_sampling","arguments":{"prompt":"x"}`, `"test_elicitation","arguments":{"message":"x"}`,
			`"test_elicitation_sep1034_defaults","arguments":{}`, `"test_elicitation_sep1330_enums","arguments":{}`,
		} {
			got := answer(t, session, request{"tools/call", `{"name":` + tool + "}"})
			if !strings.Contains(got, `"isError":true`) && !strings.HasPrefix(got, "error ") {
				t.Errorf("%s of the bare server = %s, want that it fails", tool, got)
			}
		}
	})
	t.Run("name of a question", func(t *testing.T) {
		asked := make(chan json.RawMessage, 1)
		session := connect("conformance-legacy", upstream.Legacy, func(params json.RawMessage) { asked <- params })
		answer(t, session, request{"tools/call", `{"name":"test_input_required_result_elicitation","arguments":{}}`})
		if params := <-asked; bytes.Contains(params, []byte("user_name")) {
			t.Errorf("the bare server asks %s: the name is there", params)
		}
	})
}

// The official suite finds no fault with the client that the gateway is itself
// towards remote servers, in either version of the protocol. Each scenario is a
// server, and a gateway of its own in front of it.
func TestConformanceClient(t *testing.T) {
	installed := needClients(t)
	player, err := built.Program(t.Context(), t.TempDir(), "test/clients/scenario")
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			cmd := installed.Command(ctx, installed.Conformance, "client", "--verbose", "--command", player+" "+binary+" "+t.TempDir(),
				"--requirements", version, "--timeout", "240000")
			cmd.Dir = t.TempDir()
			out, err := cmd.CombinedOutput()
			_, summary, found := strings.Cut(string(out), "=== SUITE SUMMARY ===")
			if err != nil && !isExit(err, 1) || !found {
				t.Fatalf("conformance of %s: %v\n%s", version, err, out)
			}
			if names := failed(summary); len(names) > 0 {
				t.Errorf("scenarios of %s that fail: %q\n%s", version, names, summary)
			}
			if total := regexp.MustCompile(`Total: (\d+) passed`).FindStringSubmatch(summary); total == nil || total[1] == "0" {
				t.Errorf("conformance of %s:%s", version, summary)
			}
		})
	}
}

// failed returns the scenarios that count and have failed, sorted. Those that
// do not count are listed once more, at the end.
func failed(summary string) []string {
	counted, others, _ := strings.Cut(summary, "Not scored")
	var names []string
	for _, line := range regexp.MustCompile(`✗ (\S+):`).FindAllStringSubmatch(counted, -1) {
		if !strings.Contains(others, "✗ "+line[1]+" (") {
			names = append(names, line[1])
		}
	}
	slices.Sort(names)
	return names
}

// needClients returns the MCP clients that nobody here wrote.
func needClients(t *testing.T) clients.Paths {
	t.Helper()
	installed, err := clients.Install(t.Context())
	if err != nil {
		if os.Getenv("TEST_ENGINE") == "require" {
			t.Fatal(err)
		}
		t.Skipf("no clients: %v", err)
	}
	return installed
}

// learn lets a gateway start a server once, so that its tools are known.
func (h house) learn(t *testing.T, server string) {
	t.Helper()
	gate := h.serve(t, "--approve", "all")
	session := connect(t, gate, upstream.Legacy)
	result, err := session.Call(t.Context(), "tools/call", []byte(`{"name":"mcp_add","arguments":{"name":"`+server+`"}}`), nil)
	if err != nil || !strings.Contains(string(result), "Tools available") {
		t.Fatalf("mcp_add(%s) = %.500s, %v\n%s", server, result, err, gate.stderr)
	}
	if err := session.Close(); err != nil {
		t.Fatal(err)
	}
}

// serveOpen starts the gateway on a free port of this machine until the test
// ends, and returns the URL of its endpoint, at which no token is asked for.
func (h house) serveOpen(t *testing.T, args ...string) string {
	t.Helper()
	gate := h.serve(t, append([]string{"--http", "127.0.0.1:0", "--allow-unauthenticated"}, args...)...)
	t.Cleanup(func() {
		if err := gate.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
	})
	url, err := bufio.NewReader(gate).ReadString('\n')
	if err != nil {
		t.Fatalf("the gateway printed %q, %v, want its address\n%s", url, err, gate.stderr)
	}
	return strings.TrimSpace(url)
}
