package policy_test

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/policy"
	"github.com/dockgate/dockgate/internal/rules"
)

func configSeeds(tb testing.TB) []string {
	tb.Helper()
	return []string{
		"",
		"catalogs: [a.yaml]\nexpose: [meta, direct]\nprefix: none\napproval: {mode: pinned, wait: 25s, scripted: true}\n",
		"limits: {memory: 500MB, cpus: 0.5, pids: 100, shm: 1GB, tmp: 64MB}\ntimeouts: {start: 1s, list: 1s, call: 1s, call_max: 1m, idle: 5m, stop: 5s}\n",
		"quotas: {max_running: 3, max_total_memory: 2GB}\npatience: 45s\nlists: {servers: 1, tools_per_server: 1, tools: 1}\n",
		"limits: &a {cpus: .nan}\ntimeouts: *a\n",
		"approval: {wait: -1s}\n",
		"prefix: [\n",
		"expose: {a: b}\n---\nno: field\n",
		"discovery: {toolRules: [{pattern: ['*issue*', '!/x/i'], server: github, enabled: true, tags: [a]}, {default: deny}]}\n",
		"discovery: {toolRules: [{pattern: ['/(/'], enabled: &a false}, *a]}\n",
		"roles: {reader: {catalogs: [built-in], servers: ['git*', '!github'], tools: [{default: deny}], expose: [active], quotas: {max_running: 1}}}\n",
		"http: {url: 'https://a.example/mcp'}\naccess: {default_role: owner, issuers: [{name: a, url: 'https://b.example', scopes: [{scope: x, role: owner}]}]}\n",
		"roles: &a {reader: *a}\naccess: {issuers: &b [*b]}\n",
		"roles:\naccess:\n",
		published(tb),
		"discovery: {servers: &a {x: *a}, sources: [{type: vscode}], cache: {ttl: 1h}}\n",
		"discovery: {servers: [{name: a, image: b}, {name: b, connection: {url: 'https://x.example'}}], enabled: false}\n",
		"discovery: {sources: &s [*s]}\nlimits: &l {memory: 1GB, pids: *l}\n",
	}
}

// FuzzLoadConfig holds that a configuration is refused in words about its
// file, or has no value that nothing can run with.
func FuzzLoadConfig(f *testing.F) {
	for _, text := range configSeeds(f) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		config, err := policy.LoadConfig(path)
		var mistake *policy.ConfigError
		if err != nil {
			var rule rules.Problems
			var entry catalog.Problems
			if !errors.As(err, &mistake) && !errors.As(err, &rule) && !errors.As(err, &entry) || !strings.HasPrefix(err.Error(), path+":") {
				t.Errorf("LoadConfig(%q) = %v, want one of its errors, that names the file", text, err)
			}
			return
		}
		l := config.Limits
		if min(l.Memory, l.Shm, l.Tmp) < 0 || l.PIDs < 0 || l.CPUs < 0 || math.IsNaN(l.CPUs) || math.IsInf(l.CPUs, 0) {
			t.Errorf("LoadConfig(%q) has the limits %+v", text, l)
		}
		wait := config.Timeouts
		if min(wait.Start, wait.List, wait.Call, wait.CallMax, wait.Idle, wait.Stop, config.Patience, config.Approval.Wait) < 0 {
			t.Errorf("LoadConfig(%q) has negative durations: %+v", text, config)
		}
	})
}

// FuzzProject holds that a project's file is refused in words about it, or
// says nothing that a project cannot say.
func FuzzProject(f *testing.F) {
	for _, text := range configSeeds(f) {
		f.Add(text)
	}
	f.Add("expose: [meta]\nanticipate: false\nquotas: {max_running: 1}\n")
	f.Add("discovery: {sources: [{type: custom, path: ../../etc}, {type: custom, path: a/../../b}, {type: vscode}]}\n")
	f.Fuzz(func(t *testing.T, text string) {
		_, err := policy.ParseProject("dockgate.yaml", []byte(text))
		if err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if !strings.HasPrefix(line, "dockgate.yaml:") {
					t.Errorf("ParseProject(%q) = %v, want the file in each line", text, err)
				}
			}
			return
		}
		var said map[string]any
		if yaml.Unmarshal([]byte(text), &said) != nil {
			return
		}
		for key := range said {
			if !slices.Contains([]string{"quotas", "expose", "anticipate", "discovery"}, key) {
				t.Errorf("ParseProject(%q) takes %s", text, key)
			}
		}
	})
}
