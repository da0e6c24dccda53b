package policy_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/fleet"
	"github.com/dockgate/dockgate/internal/policy"
)

// published is the configuration as others publish it, with servers in each
// form.
func published(tb testing.TB) string {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "published.yaml"))
	if err != nil {
		tb.Fatal(err)
	}
	return string(text)
}

const mb = 1 << 20

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestConfigProblems(t *testing.T) {
	tests := []struct {
		content string
		want    []string
	}{
		{"discovery: {sources: [{path: x}]}", []string{"1: discovery.sources[0].type: is missing; known: docker-mcp"}},
		{"discovery: {sources: [{type: word}]}", []string{`1: discovery.sources[0].type: is "word"; known: `}},
		{"discovery: {sources: [{type: custom}]}", []string{"1: discovery.sources[0].path: is missing"}},
		{"discovery: {sources: [{type: custom, path: x, paht: y}]}", []string{"1: discovery.sources[0].paht: "}},
		{"discovery: {sources: [{type: official-registry, path: x}]}", []string{"1: discovery.sources[0].path: unknown field"}},
		{"discovery: {sources: [{type: official-registry, url: 'ftp://x'}]}", []string{"1: discovery.sources[0].url: is \"ftp://x\", want the address"}},
		{"discovery: {sources: [{type: custom, path: x, url: 'https://x'}]}", []string{"1: discovery.sources[0].url: unknown field"}},
		{"discovery: {sources: [x]}", []string{"1: discovery.sources[0]: "}},
		{"discovery: {servers: [{image: a/b}]}", []string{"1: discovery.servers[0].name: is missing"}},
		{"discovery: {servers: [{name: a, image: a/b}, {name: a, image: a/b}]}", []string{`discovery.servers[1].name: "a" is here twice`}},
		{"discovery: {servers: {a: {image: a/b, imge: a/b}}}", []string{"discovery.servers.a.imge: "}},
		{"discovery: {servers: {a: {connection: {command: x, kind: y}}}}", []string{"discovery.servers.a.connection.kind: "}},
		{"discovery: {servers: 7}", []string{"1: discovery.servers: "}},
		{"discovery: {cache: {ttl: 0}}", []string{`1: discovery.cache.ttl: is "0", want a time above 0, such as 3600`}},
		{"discovery: {cache: {ttl: -5s}}", []string{`1: discovery.cache.ttl: is "-5s", want a time`}},
		{"discovery: {cache: {ttl: 99999999999999}}", []string{`1: discovery.cache.ttl: is "99999999999999", want a time`}},
		{
			"expose: [x]\nprefix: y\napproval:\n  mode: z\n  wait: w\nlimits: {memory: much, cpus: -1}\naproval: {}\ndiscovery:\n  toolRules: [{pattern: ['/(/'], enabled: true}]\n  servers: {a: {}}\nroles: {}\n",
			[]string{
				`1: expose: unknown group "x"; known: meta`, `2: prefix: unknown value "y"`, `4: approval.mode: unknown value "z"`, `5: approval.wait: is "w", want a duration`,
				`6: limits.memory: is "much", want a size`, "6: limits.cpus: is -1", `7: aproval: unknown field; did you mean "approval"?`,
				"9: discovery.toolRules[0].pattern[0]: ", "10: discovery.servers.a: needs one of image", "11: roles: is empty, want a mapping",
			},
		},
		{"prefix: [\n", []string{": did not find"}},
	}
	for _, tt := range tests {
		path := filepath.Join(t.TempDir(), "config.yaml")
		write(t, path, tt.content)
		_, err := policy.LoadConfig(path)
		if err == nil {
			t.Errorf("LoadConfig(%q) = nil, want %q", tt.content, tt.want)
			continue
		}
		lines := strings.Split(err.Error(), "\n")
		for _, want := range tt.want {
			if !slices.ContainsFunc(lines, func(line string) bool {
				return strings.HasPrefix(line, path+":") && strings.Contains(line, want)
			}) {
				t.Errorf("LoadConfig(%q) = %v, want a line with %q", tt.content, err, want)
			}
		}
		if len(lines) != len(tt.want) {
			t.Errorf("LoadConfig(%q) = %v, want %d lines", tt.content, err, len(tt.want))
		}
	}
}

func TestConfigOfLimits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	write(t, path, `
limits: {memory: 300MB, cpus: 0.5, pids: 64, shm: 1m, tmp: 2MiB}
timeouts: {start: 1s, list: 2s, call: 3s, call_max: 4s, idle: 5s, stop: 6s}
quotas: {max_running: 3, max_memory_per_server: 400MB, max_total_memory: 1GB, max_call: 20s, max_remote: 4}
patience: 2m
relay: example.com/relay
`)
	got, err := policy.LoadConfig(path)
	if err != nil {
		t.Fatal(err)
	}
	second := policy.Duration(time.Second)
	want := policy.Config{
		File:     path,
		Limits:   policy.Limits{Memory: 300 * mb, CPUs: 0.5, PIDs: 64, Shm: mb, Tmp: 2 * mb},
		Timeouts: policy.Timeouts{Start: second, List: 2 * second, Call: 3 * second, CallMax: 4 * second, Idle: 5 * second, Stop: 6 * second},
		Quotas: policy.Quotas{
			MaxRunning:         fleet.Bound{Max: 3, Place: path},
			MaxMemoryPerServer: fleet.Bound{Max: 400 * mb, Place: path},
			MaxTotalMemory:     fleet.Bound{Max: 1 << 30, Place: path},
			MaxCall:            fleet.Bound{Max: int64(20 * time.Second), Place: path},
			MaxRemote:          fleet.Bound{Max: 4, Place: path},
		},
		Relay:    "example.com/relay",
		Patience: 120 * second,
	}
	got.Written = nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("LoadConfig (-want +got):\n%s", diff)
	}
}

func TestConfigMistakes(t *testing.T) {
	tests := []struct{ content, want string }{
		{"quotas: {max_running: 0}", `:1: quotas.max_running: is "0", want a whole number above 0`},
		{"quotas: {max_running: -1}", `want a whole number above 0`},
		{"quotas: {max_running: [1]}", `:1: quotas.max_running: is a list, want a single value`},
		{"quotas: {max_memory_per_server: 5MB}", `want a size of 6MB or more`},
		{"quotas: {max_call: 30}", `:1: quotas.max_call: is "30", want a duration above 0, such as 30s or 5m`},
		{"quotas: {max_local: 2}", `:1: quotas.max_local: is no quota; known: max_running, `},
		{"quotas: {\"\": 2}", `is no quota`},
		{"quotas:\n  max_running: 2\n  max_concurrent_mcps: 2", `:3: quotas.max_concurrent_mcps: is set twice; max_running and max_concurrent_mcps are the same`},
		{"quotas:\n  max_running: x\n  max_call: y", "config.yaml:3: quotas.max_call: is \"y\""},
		{"quotas: 7", `:1: quotas: is "7", want a mapping`},
		{"limits: {memory: 500}", "limits.memory: is 500B, want 6MB or more"},
		{"limits: {memory: much}", `:1: limits.memory: is "much", want a size above 0, such as 500MB or 2GB`},
		{"limits: {disk: 1GB}", `:1: limits.disk: unknown field; known: cpus, memory, pids, shm, tmp`},
		{"limits: {cpus: -1}", "limits.cpus: is -1, want 0.01 or more"},
		{"limits: {pids: -1}", "limits.pids: is -1, want 0 or more"},
		{"limits: {memory: 600MB}\nquotas: {max_memory_per_mcp: 500MB}", "limits.memory: is 600MB, want quotas.max_memory_per_server (500MB) or less"},
		{"timeouts: {call: 2m, call_max: 1m}", "timeouts.call_max: is 1m, want timeouts.call (2m) or more"},
		{"timeouts: {stop: 1m}", "timeouts.stop: is 1m, want 30s at most"},
		{"timeouts: {call: -2m}", `:1: timeouts.call: is "-2m", want a duration such as 30s or 5m`},
		{"timeouts:\n  call: 30\n  idle: 5minutes", `:2: timeouts.call: is "30", want a duration such as 30s or 5m`},
		{"timeouts:\n  call: 30\n  idle: 5minutes", `:3: timeouts.idle: is "5minutes", want a duration`},
		{"timeouts: {call: [30s]}", `:1: timeouts.call: is a list, want a duration such as 30s or 5m`},
		{"timeouts: &t {call: 30}\nshare: {idle: &x y}\npatience: *x", `:2: share.idle: is "y", want a duration`},
		{"http:\n  drain: soon", `:2: http.drain: is "soon", want a duration`},
		{"approval: {wait: w}", `:1: approval.wait: is "w", want a duration`},
		{"patience: w", `:1: patience: is "w", want a duration`},
		{"lists: {ttl: w}", `:1: lists.ttl: is "w", want a duration`},
		{"limits: {cpus: many}", `:1: limits.cpus: is "many", want a number`},
		{"limits: {pids: 1.5}", `:1: limits.pids: is "1.5", want a whole number`},
		{"limits: 5", `:1: limits: is "5", want a mapping`},
		{"expose: meta", `:1: expose: is "meta", want a list`},
		{"expose: [{a: b}]", `:1: expose[0]: is a mapping, want text`},
		{"catalogs: {a: b}", `:1: catalogs: is a mapping, want a list`},
		{"approval:\n  scripted: maybe", `:2: approval.scripted: is "maybe", want true or false`},
		{"install: {env: [a]}", `:1: install.env: is a list, want a mapping`},
		{"x: &x {rate: fast}\nhttp: {<<: *x}", `:1: http.rate: is "fast", want a number`},
		{"just text", `:1: is "just text", want a mapping`},
		{"\tprefix: server", `:1: is not YAML: found character that cannot start any token; a tab cannot indent`},
		{"a: b: c", `:1: is not YAML: mapping values are not allowed in this context`},
		{"lists: {tools: -1}", `:1: lists.tools: is -1, want 0 or more`},
		{"http: {rate: -1}", `:1: http.rate: is -1, want 0 or more`},
		{"timeouts: {reply: 2m}", "timeouts.reply: unknown field; known: call, "},
	}
	for _, tt := range tests {
		path := filepath.Join(t.TempDir(), "config.yaml")
		write(t, path, tt.content)
		_, err := policy.LoadConfig(path)
		var mistake *policy.ConfigError
		if !errors.As(err, &mistake) || !strings.HasPrefix(mistake.Place, path) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("LoadConfig(%q) = %v, want %s", tt.content, err, tt.want)
		}
	}
}
