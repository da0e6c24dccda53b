package toolbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/docker"
	"github.com/dockgate/dockgate/internal/docker/dockertest"
	"github.com/dockgate/dockgate/internal/docker/owner"
	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/toolbox"
)

const scripts = `
version: 1
servers:
  box:
    limits: {memory: 128MB}
    env: {GREETING: hello}
    tools:
      - name: node
        inputSchema: {type: object, properties: {script: {type: string}, args: {type: array, items: {type: string}}}, required: [script]}
        run: {image: dockgate-test/node, entrypoint: [node, -e, "{{arguments.script}}", --], command: ["{{arguments.args|into}}"]}
`

// box starts a server of tools on the real engine.
func box(t *testing.T) (*docker.Engine, sandbox.Process) {
	t.Helper()
	e := dockertest.Connect(t, owner.Options{})
	image := dockertest.Image(t, e, "dockgate-test/node")
	file, err := catalog.Parse(catalog.Origin{Catalog: "test", Kind: catalog.User}, []byte(scripts))
	if err != nil {
		t.Fatal(err)
	}
	spec, err := sandbox.CompileTools(file.Servers[0], nil, map[string]sandbox.Image{"dockgate-test/node": image}, sandbox.Host{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := (&toolbox.Runner{Containers: e}).Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
		nothingLeft(t, e)
	})
	return e, p
}

func nothingLeft(t *testing.T, e *docker.Engine) {
	t.Helper()
	left, err := e.Running(context.WithoutCancel(t.Context()))
	if err != nil || len(left) > 0 {
		t.Errorf("the engine has %v, %v, want nothing", left, err)
	}
}

func TestEngine(t *testing.T) {
	e, p := box(t)
	s := converse(t, p)
	tests := []struct {
		script string
		args   []string
		want   string
		failed bool
	}{
		{"console.log(process.argv.slice(1).join('|'), process.env.GREETING)", []string{"a b", "$(id)", "--x"}, "a b|$(id)|--x hello\n", false},
		{"process.stdin.on('end', () => console.log('no input')).resume()", nil, "no input\n", false},
		{"console.error('broken'); process.exitCode = 3", nil, "the tool's container exited with code 3: broken", true},
		{"process.stdout.write(Object.keys(require('os').networkInterfaces()).join())", nil, "lo", false},
		{"try { require('fs').writeFileSync('/x', ''); console.log('written') } catch (e) { console.log(e.code) }", nil, "EROFS\n", false},
		{"console.log(/CapEff:\\s*(\\w+)/.exec(require('fs').readFileSync('/proc/self/status', 'utf8'))[1])", nil, "0000000000000000\n", false},
		{"process.stdout.write('x'.repeat(3 << 20))", nil, strings.Repeat("x", toolbox.MaxOutput) + "\n[cut: the output is longer than 1MiB]", false},
	}
	for _, tt := range tests {
		params, err := json.Marshal(map[string]any{"name": "node", "arguments": map[string]any{"script": tt.script, "args": append([]string{}, tt.args...)}})
		if err != nil {
			t.Fatal(err)
		}
		if got, failed := call(t, s, string(params)); got != tt.want || failed != tt.failed {
			t.Errorf("%s = %.200q (%d bytes), failed %v, want %.200q", tt.script, got, len(got), failed, tt.want)
		}
	}
	nothingLeft(t, e)
}

func TestEngineCancel(t *testing.T) {
	e, p := box(t)
	s := converse(t, p)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	hung := make(chan error, 1)
	go func() {
		_, err := s.Call(ctx, "tools/call", json.RawMessage(`{"name":"node","arguments":{"script":"setInterval(() => {}, 1000)"}}`), nil)
		hung <- err
	}()
	until(t, "a container runs", func() bool { running, err := e.Running(t.Context()); return err == nil && len(running) == 1 })
	cancel()
	if err := <-hung; !errors.Is(err, context.Canceled) {
		t.Errorf("a call that is given up = %v, want %v", err, context.Canceled)
	}
	until(t, "nothing runs", func() bool { running, err := e.Running(t.Context()); return err == nil && len(running) == 0 })
}

// until waits for a state of the engine.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for !is() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatalf("never: %s", what)
		}
	}
}
