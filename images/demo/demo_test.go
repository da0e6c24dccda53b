package main_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dockgate/dockgate/test/built"
)

// session runs the demo as a process and returns a client session with it.
func session(t *testing.T, options *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the demo runs in Linux containers only")
	}
	binary, err := built.Program(t.Context(), t.TempDir(), "images/demo")
	if err != nil {
		t.Fatal(err)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, options)
	s, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: exec.Command(binary)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close() = %v, want the server to exit with 0 at the end of its input", err)
		}
	})
	return s
}

func TestTools(t *testing.T) {
	s := session(t, nil)
	listed, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range listed.Tools {
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	if diff := cmp.Diff([]string{"add", "echo", "sandbox", "sleep"}, names); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	tests := []struct {
		tool   string
		args   map[string]any
		text   string
		failed bool
	}{
		{"echo", map[string]any{"text": "häl\nlo"}, "häl\nlo", false},
		{"echo", map[string]any{"text": ""}, "", false},
		{"add", map[string]any{"a": 1.5, "b": 2}, "3.5", false},
		{"sleep", map[string]any{"ms": 1}, "slept 1 ms", false},
		{"sleep", map[string]any{"ms": -1}, "ms is -1, want 0 or more", true},
	}
	for _, tt := range tests {
		got, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: tt.tool, Arguments: tt.args})
		if err != nil {
			t.Errorf("%s(%v) = %v", tt.tool, tt.args, err)
			continue
		}
		if text := got.Content[0].(*mcp.TextContent).Text; text != tt.text || got.IsError != tt.failed {
			t.Errorf("%s(%v) = %q, failed %v, want %q, failed %v", tt.tool, tt.args, text, got.IsError, tt.text, tt.failed)
		}
	}
}

func TestSleepReportsProgress(t *testing.T) {
	notified := make(chan *mcp.ProgressNotificationParams, 10)
	s := session(t, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, n *mcp.ProgressNotificationClientRequest) {
			notified <- n.Params
		},
	})
	params := &mcp.CallToolParams{Name: "sleep", Arguments: map[string]any{"ms": 50}}
	params.SetProgressToken("mine")
	if _, err := s.CallTool(t.Context(), params); err != nil {
		t.Fatal(err)
	}
	// The answer may overtake the client's own handling of notifications.
	var got []float64
	for range 10 {
		n := <-notified
		got = append(got, n.Progress)
		if n.ProgressToken != "mine" || n.Total != 50 {
			t.Errorf("progress = %+v, want token mine and total 50", n)
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff([]float64{5, 10, 15, 20, 25, 30, 35, 40, 45, 50}, got); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
}

func TestSandbox(t *testing.T) {
	s := session(t, nil)
	got, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "sandbox"})
	if err != nil || got.IsError {
		t.Fatalf("sandbox() = %+v, %v", got, err)
	}
	encoded, err := json.Marshal(got.StructuredContent)
	if err != nil {
		t.Fatal(err)
	}
	var report struct {
		UID          int    `json:"uid"`
		Capabilities string `json:"capabilities"`
		Mounts       []struct {
			Path string `json:"path"`
		} `json:"mounts"`
		Network struct {
			Interfaces []string `json:"interfaces"`
		} `json:"network"`
	}
	if err := json.Unmarshal(encoded, &report); err != nil {
		t.Fatal(err)
	}
	if report.UID != os.Getuid() || len(report.Capabilities) != 16 || !slices.Contains(report.Network.Interfaces, "lo") {
		t.Errorf("sandbox() = %s, want this process's own", encoded)
	}
	if len(report.Mounts) == 0 || report.Mounts[0].Path == "" {
		t.Errorf("sandbox() has mounts %v, want at least one", report.Mounts)
	}
	text := got.Content[0].(*mcp.TextContent).Text
	for _, label := range []string{"user ", "capabilities ", "memory ", "root ", "writable ", "network "} {
		if !strings.Contains("\n"+text, "\n"+label) {
			t.Errorf("report = %q, want a line %q", text, label)
		}
	}
}
