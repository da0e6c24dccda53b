package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// shared returns the processes of the shared gateway of a house.
func (h house) shared(t *testing.T) []int {
	t.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []int
	for _, file := range processes {
		line, err := os.ReadFile(file)
		if err != nil || !strings.HasPrefix(string(line), binary+"\x00gateway\x00--state\x00"+h.state+"\x00") {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, pid)
	}
	return found
}

// Clients that start at the same time share one gateway and its container; its
// crash costs the calls under way only; and it goes when they have gone.
func TestShare(t *testing.T) {
	api := needEngine(t)
	needImage(t, api, "dockgate/demo")
	h := newHouse(t, demo)
	h.config = filepath.Join(filepath.Dir(h.catalog), "config.yaml")
	if err := os.WriteFile(h.config, []byte("share: {idle: 2s}\ncatalogs: ["+h.catalog+"]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	progress := make(chan struct{}, 64)
	sessions := make([]*mcp.ClientSession, 4)
	var group sync.WaitGroup
	for i := range sessions {
		p := h.serve(t, "--share", "--server", "thing", "--approve", "all")
		group.Go(func() {
			sessions[i] = join(t, p, &mcp.ClientOptions{
				ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) { progress <- struct{}{} },
			})
			if got := text(t, sessions[i], "thing__echo", map[string]any{"text": "x"}); got != "x" {
				t.Errorf("client %d: echo = %q, want x", i, got)
			}
		})
	}
	group.Wait()
	if t.Failed() {
		return
	}
	gateways := h.shared(t)
	if running := left(t, api, h); len(gateways) != 1 || len(running) != 1 {
		t.Fatalf("gateways %v, containers %v for four clients, want one of each", gateways, running)
	}

	answered := make(chan error, 1)
	go func() {
		_, err := sessions[0].CallTool(t.Context(), &mcp.CallToolParams{
			Name: "thing__sleep", Arguments: map[string]any{"ms": 60_000}, Meta: mcp.Meta{"progressToken": "p"},
		})
		answered <- err
	}()
	<-progress
	if err := syscall.Kill(gateways[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := <-answered; err == nil || !strings.Contains(err.Error(), "gateway has ended") {
		t.Errorf("the call under way = %v, want that the gateway has ended", err)
	}
	// What is sent while it dies is under way, too.
	within(t, 20*time.Second, "the end of the process", func() bool {
		_, err := os.Stat(fmt.Sprintf("/proc/%d", gateways[0]))
		return errors.Is(err, os.ErrNotExist)
	})
	for i, session := range sessions {
		group.Go(func() {
			if got := text(t, session, "thing__echo", map[string]any{"text": "again"}); got != "again" {
				t.Errorf("client %d: echo after the crash = %q, want again", i, got)
			}
		})
	}
	group.Wait()
	if again := h.shared(t); len(again) != 1 || again[0] == gateways[0] {
		t.Errorf("gateways %v after the crash of %v, want one other", again, gateways)
	}
	for _, session := range sessions {
		_ = session.Close() // its program ends with its input
	}
	within(t, 20*time.Second, "the end of the shared gateway and its container", func() bool {
		return len(h.shared(t)) == 0 && len(left(t, api, h)) == 0
	})
}

// What a project says is about the clients in its folder alone.
func TestShareKeepsProjectsApart(t *testing.T) {
	api := needEngine(t)
	needImage(t, api, "dockgate/demo")
	h := newHouse(t, demo)
	h.config = filepath.Join(filepath.Dir(h.catalog), "config.yaml")
	if err := os.WriteFile(h.config, []byte("share: {idle: 2s}\ncatalogs: ["+h.catalog+"]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	project := t.TempDir()
	if err := os.MkdirAll(filepath.Join(project, ".dockgate"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(project, ".dockgate", "mcp-limits.yaml"), []byte("quotas: {max_execution_time: 1s}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		dir     string
		limited bool
	}{{t.TempDir(), false}, {project, true}, {t.TempDir(), false}} {
		t.Chdir(tt.dir)
		session := join(t, h.serve(t, "--share", "--server", "thing", "--approve", "all"), nil)
		result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "thing__sleep", Arguments: map[string]any{"ms": 1500}})
		if err != nil || result.IsError != tt.limited {
			t.Errorf("call in %s = %s, %v, want it limited: %v", tt.dir, fmt.Sprint(result), err, tt.limited)
		}
	}
	if got := h.shared(t); len(got) != 1 {
		t.Errorf("gateways %v, want one", got)
	}
	if running := left(t, api, h); len(running) != 2 {
		t.Errorf("containers %v, want one for the project and one for the two other folders", running)
	}
	t.Cleanup(func() {
		for _, pid := range h.shared(t) { // it would stay for a while
			_ = syscall.Kill(pid, syscall.SIGTERM)
		}
		within(t, 20*time.Second, "the end of the shared gateway", func() bool { return len(h.shared(t)) == 0 })
	})
}
