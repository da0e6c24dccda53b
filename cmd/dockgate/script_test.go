package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/docker/reach"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/tool"
	"github.com/dockgate/dockgate/internal/upstream"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"dockgate": main, "exits": exitsWith})
}

// exitsWith is a program: "exits CODE COMMAND..." runs a command and succeeds if
// it ends with that exit code.
func exitsWith() {
	command := exec.Command(os.Args[2], os.Args[3:]...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := command.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if got := command.ProcessState.ExitCode(); strconv.Itoa(got) != os.Args[1] {
		fmt.Fprintf(os.Stderr, "exit code %d, want %s\n", got, os.Args[1])
		os.Exit(1)
	}
}

// TestScripts runs the command line as people do. Each script has a state
// folder and a home of its own. The condition [engine] is that an engine
// answers; with TEST_ENGINE=require it is a failure if none does.
//
// The commands beyond testscript's are "gateway SERVER", which connects a
// client to a gateway, "call TOOL ARGUMENTS", which calls through it and keeps
// the text of the result in the file "result", "calling" and "answered", which
// are the two halves of a call, "eventually TOOL ARGUMENTS", which calls until
// it succeeds, "asked SERVER", which waits until a question is asked, "hangup",
// "website FILE", which starts a remote server, and "registry FILE NAME...",
// which starts a registry of the official kind.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			home := filepath.Join(env.WorkDir, "home")
			env.Setenv("HOME", home)
			env.Setenv("DOCKGATE_KEYCHAIN", "off")
			env.Setenv("DOCKGATE_STATE", filepath.Join(env.WorkDir, "state"))
			for _, name := range []string{"DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY"} {
				env.Setenv(name, os.Getenv(name))
			}
			// Else each process lingers for a second when the race detector is on.
			env.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0")
			real, err := os.UserHomeDir()
			env.Setenv("DOCKER_CONFIG", first(os.Getenv("DOCKER_CONFIG"), filepath.Join(real, ".docker")))
			env.Values["line"] = &line{}
			return errors.Join(err, os.Mkdir(home, 0o700), writeExports(env.WorkDir))
		},
		Condition: func(name string) (bool, error) {
			if name != "engine" {
				return false, fmt.Errorf("unknown condition %q", name)
			}
			err := answers(t)
			if err != nil && os.Getenv("TEST_ENGINE") == "require" {
				return false, err
			}
			return err == nil, nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"gateway":    dialGateway,
			"call":       makeCall,
			"calling":    beginCall,
			"answered":   endCall,
			"eventually": eventually,
			"asked":      waitAsked,
			"hangup":     hangUp,
			"website":    runWebsite,
			"registry":   runRegistry,
		},
	})
}

// writeExports makes the files approvals.json, as another machine would have
// exported it, and forged.json, in which somebody has added a right.
func writeExports(dir string) error {
	definition := json.RawMessage(`{"name":"fetch","inputSchema":{"type":"object"}}`)
	grant := sandbox.Grant{
		Server: "fetch", Source: catalog.BuiltIn, Transport: "stdio", Image: "mcp/fetch",
		Pin:     sandbox.Pin{Kind: sandbox.RepoDigest, Digest: "sha256:" + strings.Repeat("0123456789abcdef", 4), Platform: "linux/amd64"},
		Command: []string{"fetch"}, Network: catalog.NetworkFull,
	}
	approved := approval.Approval{
		Server: "fetch", Grant: grant, GrantDigest: grant.Digest(),
		Tools:   map[string]approval.Pin{"fetch": {Digest: tool.Definition{Name: "fetch", JSON: definition}.Digest(), JSON: definition}},
		Decided: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Channel: "terminal", By: principal.Local,
	}
	forged := approved
	forged.Grant.Mounts = []sandbox.Mount{{Source: "/home", Target: "/home"}}
	for name, a := range map[string]approval.Approval{"approvals.json": approved, "forged.json": forged} {
		encoded, err := json.Marshal(map[string]any{"version": 1, "approvals": []approval.Approval{a}})
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), encoded, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// answers says why the engine cannot be used.
func answers(t *testing.T) error {
	var f flags
	engine, err := reach.Connect(f.engine())
	if err != nil {
		return err
	}
	_, err = engine.Info(t.Context())
	return errors.Join(err, engine.API.Close())
}

// patience bounds what a script waits for.
const patience = time.Minute

// A line is a script's connection to a gateway.
type line struct {
	client  *visitor
	result  chan string
	website *website
	// registryDown says that the registry is out of order.
	registryDown atomic.Bool
}

func connected(ts *testscript.TestScript) *line {
	l := ts.Value("line").(*line)
	if l.client == nil {
		ts.Fatalf("no gateway is connected")
	}
	return l
}

func dialGateway(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: gateway SERVER [FLAGS...]")
	}
	l := ts.Value("line").(*line)
	program, err := exec.LookPath("dockgate")
	ts.Check(err)
	command := exec.Command(program, append([]string{"serve", "--server"}, args...)...)
	command.Dir = ts.MkAbs(".")
	for _, name := range []string{"HOME", "PATH", "DOCKGATE_STATE", "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CERT_PATH", "DOCKER_CONFIG", "TMPDIR", "GORACE"} {
		command.Env = append(command.Env, name+"="+ts.Getenv(name))
	}
	log, err := os.Create(ts.MkAbs("gateway.log"))
	ts.Check(err)
	command.Stderr = log
	stream, err := startPiped(command)
	ts.Check(err)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	session, err := upstream.Connect(ctx, stream, upstream.Options{
		Client: upstream.Implementation{Name: "script", Version: "1"}, Era: upstream.Legacy,
	})
	ts.Check(err)
	l.client = &visitor{Session: session, log: log}
	ts.Defer(func() {
		if l.client != nil {
			_ = l.client.Close()
		}
	})
}

func hangUp(ts *testscript.TestScript, _ bool, _ []string) {
	l := connected(ts)
	err := l.client.Close()
	l.client = nil
	ts.Check(err)
}

func makeCall(ts *testscript.TestScript, neg bool, args []string) {
	beginCall(ts, neg, args)
	endCall(ts, neg, nil)
}

// eventually repeats a call until it ends as the script wants: a gateway sees
// within a moment what was decided in another process.
func eventually(ts *testscript.TestScript, neg bool, args []string) {
	deadline := time.After(patience)
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		beginCall(ts, neg, args)
		text, failed := result(ts)
		if failed == neg {
			return
		}
		select {
		case <-deadline:
			ts.Fatalf("the call still ends with %q", text)
		case <-ticker.C:
		}
	}
}

func beginCall(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: call TOOL ARGUMENTS")
	}
	l := connected(ts)
	l.result = make(chan string, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		text, err := l.client.call(ctx, args[0], args[1], func(float64, float64) {})
		if err != nil {
			text = "error: " + err.Error()
		}
		l.result <- text
	}()
}

func endCall(ts *testscript.TestScript, neg bool, _ []string) {
	text, failed := result(ts)
	ts.Logf("%s", text)
	if failed != neg {
		ts.Fatalf("the call failed: %v, want %v", failed, neg)
	}
}

// result waits for the result of a call and keeps it in the file "result".
func result(ts *testscript.TestScript) (text string, failed bool) {
	text = <-connected(ts).result
	ts.Check(os.WriteFile(ts.MkAbs("result"), []byte(text), 0o600))
	return text, strings.HasPrefix(text, "error: ")
}

// waitAsked waits until a gateway has asked about a server.
func waitAsked(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: asked SERVER")
	}
	deadline := time.After(patience)
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		ts.Check(ts.Exec("dockgate", "approvals", "--json"))
		var found struct {
			Questions []struct{ Server string }
		}
		ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &found))
		for _, question := range found.Questions {
			if question.Server == args[0] {
				return
			}
		}
		select {
		case <-deadline:
			ts.Fatalf("nothing was asked about %q", args[0])
		case <-ticker.C:
		}
	}
}
