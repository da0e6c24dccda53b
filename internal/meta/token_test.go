package meta_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tiktoken-go/tokenizer"

	"github.com/dockgate/dockgate/internal/call"
	"github.com/dockgate/dockgate/internal/gateway/gatewaytest"
	"github.com/dockgate/dockgate/internal/meta"
	"github.com/dockgate/dockgate/internal/principal"
)

// counter counts the tokens of a text with each encoding, and returns the most.
func counter(t *testing.T) func(text string) int {
	t.Helper()
	var codecs []tokenizer.Codec
	for _, encoding := range []tokenizer.Encoding{tokenizer.O200kBase, tokenizer.Cl100kBase} {
		codec, err := tokenizer.Get(encoding)
		check(t, err)
		codecs = append(codecs, codec)
	}
	return func(text string) int {
		most := 0
		for _, codec := range codecs {
			n, err := codec.Count(text)
			check(t, err)
			most = max(most, n)
		}
		return most
	}
}

// The tools of a corpus, as a server lists them, and queries for them.
type corpus struct {
	name    string
	tools   []string
	queries []string
}

// corpora are a small one of our own, which is everywhere, and what others
// have written, where it is there.
func corpora(t *testing.T) []corpus {
	t.Helper()
	var own corpus
	own.name = "own"
	for i, verb := range strings.Fields("create update delete list get search fork merge close open lock star watch archive transfer") {
		own.tools = append(own.tools, fmt.Sprintf(`{"name":"%s_repository_item","description":"%s an item of the repository, with everything that belongs to it: its comments, its labels, and the people to whom it was assigned. Needs the right to write.",
			"inputSchema":{"type":"object","properties":{"owner":{"type":"string","description":"The account that owns the repository"},"repo":{"type":"string","description":"The name of the repository"},"number":{"type":"integer","description":"The number of the item"}},"required":["owner","repo"]}}`, verb, verb))
		own.queries = append(own.queries, verb+" an item", fmt.Sprint("repository ", i))
	}
	all := []corpus{own}
	for _, name := range []string{"seal-dev", "metatool-dev"} {
		folder := filepath.Join("..", "..", "..", "shared", "datasets", name)
		if _, err := os.Stat(folder); err != nil {
			t.Logf("without %s, which is not here", name)
			continue
		}
		c := corpus{name: name}
		seen := map[string]bool{}
		lines(t, filepath.Join(folder, "corpus.jsonl"), func(line []byte) {
			var entry struct {
				Name, Description string
				Schema            json.RawMessage
			}
			check(t, json.Unmarshal(line, &entry))
			if entry.Schema == nil {
				entry.Schema = json.RawMessage(`{"type":"object"}`)
			}
			definition, err := json.Marshal(map[string]any{"name": entry.Name, "description": entry.Description, "inputSchema": entry.Schema})
			check(t, err)
			if !seen[entry.Name] && len(c.tools) < 900 {
				seen[entry.Name] = true
				c.tools = append(c.tools, string(definition))
			}
		})
		lines(t, filepath.Join(folder, "queries.jsonl"), func(line []byte) {
			var entry struct{ Query string }
			check(t, json.Unmarshal(line, &entry))
			if len(c.queries) < 200 {
				c.queries = append(c.queries, entry.Query)
			}
		})
		all = append(all, c)
	}
	return all
}

func lines(t *testing.T, path string, do func([]byte)) {
	t.Helper()
	file, err := os.Open(path)
	check(t, err)
	defer func() { check(t, file.Close()) }()
	scanner := bufio.NewScanner(file)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		do(scanner.Bytes())
	}
	check(t, scanner.Err())
}

// What models read of our own tools costs them no more than is promised.
func TestTokensOfDefinitions(t *testing.T) {
	count := counter(t)
	v := visit(t, gatewaytest.Options{Active: []string{"one", "two", "alone"}}, github(), nil)
	// The definitions as they are written: the SDK writes defaults of its own.
	own, err := meta.Tools()
	check(t, err)
	spent := map[meta.Group]int{}
	for _, group := range []meta.Group{meta.Meta, meta.Dynamic} {
		listed := slices.DeleteFunc(slices.Clone(own), func(t meta.Tool) bool { return t.Group != group })
		if group == meta.Meta && len(listed) != 5 {
			t.Errorf("%d meta-tools, want exactly five", len(listed))
		}
		entries := make([]json.RawMessage, len(listed))
		for i, t := range listed {
			entries[i] = t.JSON
		}
		if i := slices.IndexFunc(listed, func(t meta.Tool) bool { return t.Name == "search_tools" }); i >= 0 {
			// With as many names as there is ever room for.
			names := make([]string, 1000)
			for i := range names {
				names[i] = fmt.Sprintf("brave-search-%d", i)
			}
			entries[i] = json.RawMessage(strings.Replace(string(entries[i]), `cannot be done."`, `cannot be done. Servers: `+meta.Names(names)+`."`, 1))
			if !strings.Contains(string(entries[i]), "brave-search-9,") {
				t.Errorf("search_tools = %s, want it with names", entries[i])
			}
		}
		encoded, err := json.Marshal(map[string]any{"tools": entries})
		check(t, err)
		if spent[group] = count(string(encoded)); spent[group] >= 600 {
			t.Errorf("the group %s costs %d tokens, want fewer than 600", group, spent[group])
		}
	}
	t.Logf("tokens: %v", spent)
	listed, err := v.session.ListTools(t.Context(), nil)
	check(t, err)
	if len(listed.Tools) < 9 {
		t.Errorf("%d tools are listed, want all of ours", len(listed.Tools))
	}
}

func TestTokensOfAnswers(t *testing.T) {
	count := counter(t)
	for _, c := range corpora(t) {
		t.Run(c.name, func(t *testing.T) {
			v := visit(t, gatewaytest.Options{}, &lister{tools: c.tools}, &lister{tools: c.tools[:15]})
			v.add("one", "two")
			most, full := 0, 0
			for _, query := range c.queries {
				var found struct{ Results []meta.Hit }
				said := v.fetch("search_tools", map[string]any{"query": query}, &found)
				most = max(most, count(said))
				if len(found.Results) == 10 {
					full++
				}
				if n := count(said); n >= 200 {
					t.Errorf("search_tools(%s) costs %d tokens, want fewer than 200:\n%s", query, n, said)
				}
			}
			if full == 0 {
				t.Error("no answer had ten hits")
			}
			var all struct{ Tools []meta.Listed }
			said := v.fetch("list_tools", map[string]any{"server": "two"}, &all)
			if n := count(said); n > 300 || len(all.Tools) != 15 {
				t.Errorf("list_tools of %d tools costs %d tokens, want at most 300:\n%s", len(all.Tools), n, said)
			}
			var details []int
			for i := 0; i < len(c.tools); i += max(1, len(c.tools)/150) {
				var head struct{ Name string }
				check(t, json.Unmarshal([]byte(c.tools[i]), &head))
				var got meta.Details
				said := v.fetch("get_tool_details", map[string]any{"server": "one", "tool": head.Name}, &got)
				details = append(details, count(said))
				if got.Tool != head.Name || len(got.InputSchema) == 0 || got.Examples == nil {
					t.Errorf("get_tool_details(%s) = %+v, want every field", head.Name, got)
				}
				if strings.HasSuffix(said, "…") {
					t.Errorf("get_tool_details(%s) is cut and does not say so:\n%s", head.Name, said)
				}
			}
			slices.Sort(details)
			median := details[len(details)/2]
			if median >= 100 {
				t.Errorf("details cost %d tokens in the median, want fewer than 100", median)
			}
			t.Logf("tokens: search %d at most, list %d, details %d in the median, %d at most", most, count(said), median, details[len(details)-1])
		})
	}
}

// A task for two tools of two servers, neither of which runs: what an agent
// reads from the list of tools to the last result.
func TestTokensOfATask(t *testing.T) {
	count := counter(t)
	v := visit(t, gatewaytest.Options{Expose: []meta.Group{meta.Meta}, Active: []string{"filesystem", "github"}, Catalog: `version: 1
servers:
  filesystem: {image: test/two, description: File system operations}
  github: {image: test/one, description: GitHub API integration}
  database: {image: test/one, description: Database queries}
`}, github(), files())
	for server, tool := range map[string]string{"filesystem": "write_file", "github": "fails"} { // they have run before
		v.call("execute_tool", map[string]any{"server": server, "tool": tool, "arguments": map[string]any{"path": "x", "text": "y"}})
		_, err := v.Fleet.Stop(t.Context(), server)
		check(t, err)
	}
	v.Changed(t.Context())

	listed, err := v.session.ListTools(t.Context(), nil)
	check(t, err)
	encoded, err := json.Marshal(listed)
	check(t, err)
	if len(listed.Tools) != 5 {
		t.Errorf("%d tools are listed, want five", len(listed.Tools))
	}
	spent := []int{count(string(encoded))}
	for _, step := range []struct {
		query, server, tool string
		arguments           map[string]any
	}{
		{"read file", "filesystem", "read_file", map[string]any{"path": "README.md"}},
		{"create github issue", "github", "create_issue", map[string]any{"repo": "owner/repo", "title": "Summary", "body": "What it says"}},
	} {
		var found struct{ Results []meta.Hit }
		said := v.fetch("search_tools", map[string]any{"query": step.query}, &found)
		if len(found.Results) == 0 || found.Results[0].Server != step.server || found.Results[0].Tool != step.tool {
			t.Fatalf("search_tools(%s) = %+v, want %s of %s first", step.query, found.Results, step.tool, step.server)
		}
		spent = append(spent, count(said))
		var details meta.Details
		said = v.fetch("get_tool_details", map[string]any{"server": step.server, "tool": step.tool}, &details)
		for _, p := range details.Parameters {
			if _, given := step.arguments[p.Name]; p.Required && !given {
				t.Errorf("%s requires %s, which the step does not give", step.tool, p.Name)
			}
		}
		spent = append(spent, count(said))
		result, err := v.Desk.Execute(t.Context(), call.Client{Principal: principal.Local, Session: "s"}, step.server, step.tool, raw(t, step.arguments))
		check(t, err)
		if !strings.Contains(string(result), `"arguments":`+string(raw(t, step.arguments))) {
			t.Errorf("execute_tool(%s) = %s, want the server's result", step.tool, result)
		}
		spent = append(spent, count(string(result)))
	}
	total := 0
	for _, n := range spent {
		total += n
	}
	if total > 1600 || len(spent) != 7 {
		t.Errorf("%v, together %d tokens for %d messages, want at most 1600 for 7", spent, total, len(spent))
	}
	t.Logf("tokens: %v, together %d", spent, total)
}

func raw(t *testing.T, value any) json.RawMessage {
	t.Helper()
	encoded, err := json.Marshal(value)
	check(t, err)
	return encoded
}

// A list of ten servers with all that is said of them.
func TestTokensOfServers(t *testing.T) {
	count := counter(t)
	for n, most := range map[int]int{10: 200, 40: 1000, 1000: 1100} {
		catalog := "version: 1\nservers:\n"
		var names []string
		for i := range n {
			name := fmt.Sprintf("%s-%d", []string{"github-official", "filesystem", "postgres", "brave-search", "kubernetes"}[i%5], i)
			names = append(names, name)
			catalog += fmt.Sprintf("  %s: {image: test/one, description: 'Access repositories, issues and pull requests, search code, and manage what belongs to them: labels, milestones, releases, workflows. Official.'}\n", name)
		}
		v := visit(t, gatewaytest.Options{Catalog: catalog, Active: names}, github(), nil)
		found, said := v.servers()
		if got := count(said); got > most || len(found) != n {
			t.Errorf("list_mcp_servers of %d servers costs %d tokens, want at most %d:\n%s", len(found), got, most, said)
		} else {
			t.Logf("tokens: %d of %d servers", got, n)
		}
		if n > 10 && !strings.Contains(said, "structuredContent has all") {
			t.Errorf("list_mcp_servers of %d servers does not say that it is cut:\n%s", n, said)
		}
	}
}
