package store_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/inventory"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/store"
	"github.com/dockgate/dockgate/internal/tool"
)

const (
	workerDir  = "STORE_TEST_DIR"
	workerName = "STORE_TEST_WORKER"
	rounds     = 15
)

// TestMain lets the test program be another process of the same folder.
func TestMain(m *testing.M) {
	if dir := os.Getenv(workerDir); dir != "" {
		if err := work(context.Background(), dir, os.Getenv(workerName)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// work approves servers, one each round, and prints a line for each after it
// was promised.
func work(ctx context.Context, dir, name string) error {
	db, err := store.Open(ctx, dir)
	if err != nil {
		return err
	}
	record := func(context.Context, approval.Event) error { return nil }
	book, err := approval.Open(ctx, db, approval.Options{Mode: approval.ModeAll, Record: record})
	if err != nil {
		return err
	}
	limit := rounds
	if strings.HasPrefix(name, "endless") {
		limit = 1 << 30
	}
	_, _ = fmt.Fprintln(os.Stdout, "state", db.StateID())
	for n := range limit {
		grant := sandbox.Grant{Server: name + strconv.Itoa(n)}
		request := approval.Request{Server: grant.Server, Grant: grant, Principal: principal.Local}
		if _, err := book.Ask(ctx, request); err != nil {
			return err
		}
		listed := []tool.Definition{{Name: "x", JSON: []byte(`{"name":"x"}`)}}
		if _, err := book.Pin(ctx, request, listed); err != nil {
			return err
		}
		if err := db.PutOffer(ctx, inventory.Key{Spec: grant.Server}, inventory.Offer{Tools: inventory.NewTools(listed)}); err != nil {
			return err
		}
		_, _ = fmt.Fprintln(os.Stdout, "done", grant.Server)
	}
	return db.Close()
}

func worker(t *testing.T, dir, name string) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Env = append(os.Environ(), workerDir+"="+dir, workerName+"="+name)
	return cmd
}

// Several processes start at once on a folder that is not there yet.
func TestManyProcesses(t *testing.T) {
	const processes = 6
	dir := t.TempDir() + "/state"
	var workers [processes]*exec.Cmd
	var out, failed [processes]bytes.Buffer
	for i := range workers {
		workers[i] = worker(t, dir, string(rune('a'+i)))
		workers[i].Stdout, workers[i].Stderr = &out[i], &failed[i]
		if err := workers[i].Start(); err != nil {
			t.Fatal(err)
		}
	}
	for i, w := range workers {
		if err := w.Wait(); err != nil {
			t.Errorf("process %d: %v: %s", i, err, failed[i].String())
		}
	}
	db := open(t, dir)
	for i := range out {
		if !strings.HasPrefix(out[i].String(), "state "+db.StateID()+"\n") {
			t.Errorf("process %d saw %q, want state %s", i, strings.SplitN(out[i].String(), "\n", 2)[0], db.StateID())
		}
	}
	content, err := db.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := len(content.Approvals); got != processes*rounds {
		t.Errorf("%d approvals, want %d", got, processes*rounds)
	}
	for _, a := range content.Approvals {
		if len(a.Tools) != 1 {
			t.Errorf("%s has %d pins, want 1", a.Server, len(a.Tools))
		}
	}
}

// A process that is killed while it writes takes nothing with it that it
// promised, and leaves nothing that others would have to wait for.
func TestKilledWriter(t *testing.T) {
	dir := t.TempDir()
	for run := range 5 {
		name := fmt.Sprintf("endless%d-", run)
		cmd := worker(t, dir, name)
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		promised := map[string]bool{}
		lines := bufio.NewScanner(stdout)
		for lines.Scan() {
			if server, ok := strings.CutPrefix(lines.Text(), "done "); ok {
				promised[server] = true
			}
			if len(promised) == 3+run {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := cmd.Wait(); err == nil {
			t.Fatal("the writer ended by itself")
		}
		if len(promised) == 0 {
			t.Fatal("the writer promised nothing")
		}
		db := open(t, dir)
		if err := db.Verify(t.Context()); err != nil {
			t.Errorf("Verify = %v", err)
		}
		content, err := db.Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range content.Approvals {
			delete(promised, a.Server)
		}
		if len(promised) != 0 {
			t.Errorf("lost %v", promised)
		}
	}
}
