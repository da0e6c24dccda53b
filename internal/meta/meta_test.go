package meta_test

import (
	"encoding/json"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dockgate/dockgate/internal/call"
	"github.com/dockgate/dockgate/internal/gateway/gatewaytest"
	"github.com/dockgate/dockgate/internal/meta"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/rules"
	"github.com/dockgate/dockgate/internal/schema"
)

// github is a server with the tools of the examples.
func github() *lister {
	return &lister{tools: []string{
		`{"name":"create_issue","description":"Create a new GitHub issue in a repository. It can be closed later.","inputSchema":{"type":"object",
			"properties":{"repo":{"type":"string","description":"Repository name (owner/repo)"},"body":{"type":"string","description":"Issue body (markdown)"},
			"title":{"type":"string","description":"Issue title"},"labels":{"type":"array","items":{"type":"string"}},"state":{"enum":["open","closed"]}},
			"required":["repo","title"]}}`,
		`{"name":"update_issue","description":"Update an existing GitHub issue","inputSchema":{"type":"object"}}`,
		`{"name":"list_repos","description":"List GitHub repositories","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`,
		`{"name":"delete_repo","description":"Delete a GitHub repository","inputSchema":{"type":"object"}}`,
		`{"name":"fails","description":"Fails","inputSchema":{"type":"object"}}`,
	}}
}

func files() *lister {
	return &lister{tools: []string{
		`{"name":"read_file","description":"Read a file","inputSchema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}`,
		`{"name":"write_file","description":"Write a file","inputSchema":{"type":"object","properties":{"path":{"type":"string"},"text":{"type":"string"}},"required":["path","text"]}}`,
	}}
}

// seedRules tag what is about issues and disable what deletes.
func seedRules(t *testing.T) rules.Rules {
	yes, no := true, false
	return ruled(t,
		rules.Rule{Pattern: []string{"*"}, Enabled: &yes, Tags: []string{"github"}, Server: "one"},
		rules.Rule{Pattern: []string{"*issue*"}, Enabled: &yes, Tags: []string{"issues"}},
		rules.Rule{Pattern: []string{"*delete*"}, Enabled: &no, Tags: []string{"dangerous"}},
		rules.Rule{Pattern: []string{"*file*"}, Enabled: &yes})
}

type server struct {
	Name, Description, Status, State string
	ToolCount, EnabledCount          int
	StartsOnUse                      bool
}

// servers returns what list_mcp_servers says, and its text.
func (v *visitor) servers() ([]server, string) {
	v.t.Helper()
	var found struct{ Servers []server }
	said := v.fetch("list_mcp_servers", nil, &found)
	return found.Servers, said
}

func TestListServers(t *testing.T) {
	v := visit(t, gatewaytest.Options{Rules: seedRules(t), Active: []string{"two"}}, github(), nil)
	want := []server{{Name: "two", Status: "disconnected", State: "waits for approval", StartsOnUse: true, ToolCount: 1, EnabledCount: 0}}
	if got, said := v.servers(); cmp.Diff(want, got) != "" || !strings.Contains(said, "two (0 tools, waits for approval)") {
		t.Errorf("list_mcp_servers = %+v\n%s\nwant %+v", got, said, want)
	}
	v.add("one")
	one := server{Name: "one", Description: "The first server", Status: "connected", State: "ready", StartsOnUse: true, ToolCount: 5, EnabledCount: 4}
	if got, said := v.servers(); cmp.Diff([]server{one, want[0]}, got) != "" || !strings.Contains(said, "\none (4 tools): The first server") {
		t.Errorf("list_mcp_servers = %+v\n%s\nwant %+v", got, said, one)
	}
	_, err := v.Fleet.Stop(t.Context(), "one")
	check(t, err)
	one.Status, one.State = "disconnected", "dormant"
	if got, said := v.servers(); cmp.Diff(one, got[0]) != "" || strings.Contains(said, "dormant") || !strings.HasPrefix(said, "Each starts on use.") {
		t.Errorf("list_mcp_servers = %+v\n%s\nwant %+v", got[0], said, one)
	}
	// One that cannot be started costs the others nothing.
	if f := v.fails("mcp_add", map[string]any{"name": "two"}); f.Error.Code != "SERVER_CONNECTION_ERROR" {
		t.Errorf("mcp_add(two) = %+v, want SERVER_CONNECTION_ERROR", f)
	}
	v.add("one")
	one.Status, one.State = "connected", "ready"
	if got, _ := v.servers(); len(got) != 2 || cmp.Diff(one, got[0]) != "" || got[1].Name != "two" || got[1].Status == "connected" {
		t.Errorf("list_mcp_servers = %+v, want one connected, and two not", got)
	}
}

// A server that is in no catalog any more is said to be, beside the others.
func TestListUnknownServer(t *testing.T) {
	v := visit(t, gatewaytest.Options{Active: []string{"gone", "one"}}, github(), nil)
	v.add("one")
	want := []server{
		{Name: "gone", Status: "error", State: "not in any catalog"},
		{Name: "one", Description: "The first server", Status: "connected", State: "ready", StartsOnUse: true, ToolCount: 5, EnabledCount: 5},
	}
	if got, said := v.servers(); cmp.Diff(want, got) != "" || !strings.Contains(said, "gone (0 tools, not in any catalog)") {
		t.Errorf("list_mcp_servers = %+v\n%s\nwant %+v", got, said, want)
	}
}

func TestSearchTools(t *testing.T) {
	v := visit(t, gatewaytest.Options{Rules: seedRules(t)}, github(), files())
	search := func(query string, more map[string]any) (refs []string, said string) {
		t.Helper()
		arguments := map[string]any{"query": query}
		for name, value := range more {
			arguments[name] = value
		}
		var found struct{ Results []meta.Hit }
		said = v.fetch("search_tools", arguments, &found)
		last := 1.0
		for _, hit := range found.Results {
			refs = append(refs, hit.Server+"/"+hit.Tool)
			if hit.Relevance <= 0 || hit.Relevance > last || hit.Tags == nil || hit.Summary == "" {
				t.Errorf("search_tools(%s) = %+v, want falling relevance, tags and a summary", query, hit)
			}
			last = hit.Relevance
			if hit.Tool == "create_issue" && !slices.Equal(hit.Tags, []string{"github", "issues"}) {
				t.Errorf("create_issue has the tags %v, want github and issues", hit.Tags)
			}
		}
		return refs, said
	}
	if refs, said := search("issue", nil); len(refs) > 0 || !strings.Contains(said, "mcp_find") {
		t.Errorf("search_tools before there is a server = %v, %s", refs, said)
	}
	v.add("one", "two")
	first := func(query, want string) {
		t.Helper()
		if refs, said := search(query, nil); len(refs) == 0 || refs[0] != want || !strings.HasPrefix(said, want+": ") {
			t.Errorf("search_tools(%s) = %v, %s, want %s first", query, refs, said, want)
		}
	}
	first("github issue create", "one/create_issue")
	first("read file", "two/read_file")
	first("list_repos", "one/list_repos")
	if refs, _ := search("delete repository", nil); slices.Contains(refs, "one/delete_repo") {
		t.Errorf("search_tools found %v, want no disabled tool", refs)
	}
	if refs, _ := search("file", map[string]any{"limit": 1}); len(refs) != 1 {
		t.Errorf("search_tools with the limit 1 = %v", refs)
	}
	if refs, _ := search("file", map[string]any{"server": "one"}); slices.ContainsFunc(refs, func(r string) bool { return strings.HasPrefix(r, "two/") }) {
		t.Errorf("search_tools of one = %v, want none of two", refs)
	}
	// What a server lists anew is found; what was removed is not.
	v.call("mcp_remove", map[string]any{"name": "two"})
	for query, want := range map[string]string{
		"":  "query is empty",
		" ": "query is empty",
	} {
		if f := v.fails("search_tools", map[string]any{"query": query}); f.Error.Code != "VALIDATION_ERROR" || !strings.Contains(f.Error.Message, want) {
			t.Errorf("search_tools(%q) = %+v, want %s", query, f, want)
		}
	}
	if f := v.fails("search_tools", map[string]any{"query": "x", "server": "onne"}); f.Error.Code != "TOOL_NOT_FOUND" || !strings.Contains(f.Error.Message, "one") {
		t.Errorf("search_tools of onne = %+v, want the nearest", f)
	}
}

// What changes is found as it is.
func TestSearchAfterChange(t *testing.T) {
	one := github()
	v := visit(t, gatewaytest.Options{}, one, nil)
	v.add("one")
	var found struct{ Results []meta.Hit }
	v.fetch("search_tools", map[string]any{"query": "translate_text"}, &found)
	if slices.ContainsFunc(found.Results, func(h meta.Hit) bool { return h.Relevance > 0.5 }) {
		t.Errorf("search_tools(translate_text) = %v, want nothing much", found.Results)
	}
	one.mu.Lock()
	one.tools = append(one.tools, `{"name":"translate_text","description":"Translate a text","inputSchema":{"type":"object"}}`)
	one.mu.Unlock()
	_, err := v.Fleet.Stop(t.Context(), "one")
	check(t, err)
	v.call("execute_tool", map[string]any{"server": "one", "tool": "list_repos", "arguments": map[string]any{}})
	v.Changed(t.Context())
	v.fetch("search_tools", map[string]any{"query": "translate_text"}, &found)
	if len(found.Results) == 0 || found.Results[0].Tool != "translate_text" || found.Results[0].Relevance != 1 {
		t.Errorf("search_tools(translate_text) = %v, want the new tool", found.Results)
	}
}

func TestListTools(t *testing.T) {
	v := visit(t, gatewaytest.Options{Rules: seedRules(t)}, github(), nil)
	v.add("one")
	type listed struct {
		Server string
		Tools  []meta.Listed
	}
	var got listed
	said := v.fetch("list_tools", map[string]any{"server": "one"}, &got)
	want := listed{"one", []meta.Listed{
		{Name: "create_issue", Summary: "Create a new GitHub issue in a repository", Enabled: true, Tags: []string{"github", "issues"}},
		{Name: "update_issue", Summary: "Update an existing GitHub issue", Enabled: true, Tags: []string{"github", "issues"}},
		{Name: "list_repos", Summary: "List GitHub repositories", Enabled: true, Tags: []string{"github"}},
		{Name: "fails", Summary: "Fails", Enabled: true, Tags: []string{"github"}},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("list_tools (-want +got):\n%s", diff)
	}
	if !strings.HasPrefix(said, "one, 4 tools, 1 disabled:\ncreate_issue: Create a new GitHub issue in a repository\n") {
		t.Errorf("list_tools says %s", said)
	}
	said = v.fetch("list_tools", map[string]any{"server": "one", "includeDisabled": true}, &got)
	disabled := meta.Listed{Name: "delete_repo", Summary: "Delete a GitHub repository", Tags: []string{"github", "dangerous"}}
	if len(got.Tools) != 5 || cmp.Diff(disabled, got.Tools[3]) != "" || !strings.Contains(said, "delete_repo (disabled): ") {
		t.Errorf("list_tools with disabled ones = %+v, %s, want %+v", got.Tools, said, disabled)
	}
	for _, tt := range []struct {
		arguments     map[string]any
		code, message string
	}{
		{nil, "VALIDATION_ERROR", "list_tools: server is missing"},
		{map[string]any{"server": 1}, "VALIDATION_ERROR", "server is a JSON number, want text"},
		{map[string]any{"server": "one", "includeDisabled": "yes"}, "VALIDATION_ERROR", "includeDisabled is a JSON string, want true or false"},
		{map[string]any{"server": "one", "all": true}, "VALIDATION_ERROR", `unknown field "all"`},
		{map[string]any{"server": "onne"}, "TOOL_NOT_FOUND", `unknown server "onne"; nearest: one`},
	} {
		if f := v.fails("list_tools", tt.arguments); f.Error.Code != tt.code || !strings.Contains(f.Error.Message, tt.message) {
			t.Errorf("list_tools(%v) = %+v, want %s, %s", tt.arguments, f.Error, tt.code, tt.message)
		}
	}
}

func TestDetails(t *testing.T) {
	v := visit(t, gatewaytest.Options{Rules: seedRules(t)}, github(), nil)
	v.add("one")
	var got meta.Details
	said := v.fetch("get_tool_details", map[string]any{"server": "one", "tool": "create_issue"}, &got)
	want := `create_issue(repo: string, title: string, body?: string, labels?: string[], state?: open|closed)
Create a new GitHub issue in a repository. It can be closed later.
repo: Repository name (owner/repo)
title: Issue title
body: Issue body (markdown)`
	if !strings.HasPrefix(said, want) {
		t.Errorf("get_tool_details says\n%s\nwant\n%s", said, want)
	}
	parameters := []schema.Parameter{
		{Name: "repo", Type: "string", Description: "Repository name (owner/repo)", Required: true},
		{Name: "title", Type: "string", Description: "Issue title", Required: true},
		{Name: "body", Type: "string", Description: "Issue body (markdown)"},
		{Name: "labels", Type: "string[]"},
		{Name: "state", Type: "open|closed"},
	}
	if diff := cmp.Diff(parameters, got.Parameters); diff != "" {
		t.Errorf("parameters (-want +got):\n%s", diff)
	}
	if got.Server != "one" || got.Tool != "create_issue" || !got.Enabled || !slices.Equal(got.Tags, []string{"github", "issues"}) || !strings.Contains(string(got.InputSchema), `"markdown`) && !strings.Contains(string(got.InputSchema), "markdown") {
		t.Errorf("get_tool_details = %+v", got)
	}
	example := meta.Example{
		Description: "Made from the required parameters: the values are placeholders", Made: true,
		Parameters: json.RawMessage(`{"repo":"\u003crepo\u003e","title":"\u003ctitle\u003e"}`),
	}
	if len(got.Examples) != 1 || got.Examples[0].Description != example.Description || !got.Examples[0].Made {
		t.Errorf("examples %+v, want %+v", got.Examples, example)
	}
	f := v.fails("get_tool_details", map[string]any{"server": "one", "tool": "create_isue"})
	if f.Error.Code != "TOOL_NOT_FOUND" || f.Error.Tool != "create_isue" || f.Error.Server != "one" ||
		!strings.Contains(f.Error.Message, "nearest: create_issue") || !strings.Contains(f.Error.Message, "it has: create_issue, update_issue, list_repos, fails") {
		t.Errorf("get_tool_details of an unknown tool = %+v, want the nearest and all", f.Error)
	}
	if tools, ok := f.Error.Details["tools"].([]any); !ok || len(tools) != 4 {
		t.Errorf("details = %v, want the enabled tools", f.Error.Details)
	}
	v.fetch("get_tool_details", map[string]any{"server": "one", "tool": "delete_repo"}, &got)
	if got.Enabled {
		t.Error("delete_repo is not marked as disabled")
	}
	for parameter, arguments := range map[string]map[string]any{"server": {"tool": "x"}, "tool": {"server": "one"}} {
		if f := v.fails("get_tool_details", arguments); f.Error.Message != "get_tool_details: "+parameter+" is missing" {
			t.Errorf("get_tool_details(%v) = %+v", arguments, f.Error)
		}
	}
}

// A command that a failure names is one that can be typed, whichever tool says
// it: in a container of its own the gateway is started in another way.
func TestFailuresArePhrased(t *testing.T) {
	phrase := func(text string) string { return strings.ReplaceAll(text, "dockgate ", "docker run dockgate ") }
	v := visit(t, gatewaytest.Options{Phrase: phrase}, github(), nil)
	for name, arguments := range map[string]map[string]any{
		"execute_tool":     {"server": "onne", "tool": "x"},
		"get_tool_details": {"server": "onne", "tool": "x"},
		"mcp_add":          {"name": "onne"},
	} {
		if got := text(v.call(name, arguments)); !strings.Contains(got, ": docker run dockgate catalog ls") {
			t.Errorf("%s(%v) = %s, want the command in other words", name, arguments, got)
		}
	}
}

func TestExecute(t *testing.T) {
	one := github()
	v := visit(t, gatewaytest.Options{Rules: seedRules(t)}, one, nil)
	v.add("one")
	execute := func(tool string, arguments any) map[string]any {
		return map[string]any{"server": "one", "tool": tool, "arguments": arguments}
	}
	for _, tt := range []struct {
		arguments       map[string]any
		code, mentioned string
	}{
		{execute("create_issue", map[string]any{"repo": "a/b"}), "TOOL_VALIDATION_ERROR", "title"},
		{execute("create_issue", map[string]any{"repo": 1, "title": "x"}), "TOOL_VALIDATION_ERROR", `"required":["repo","title"]`},
		{execute("create_issue", map[string]any{"repo": "a/b", "title": "x", "state": "ajar"}), "TOOL_VALIDATION_ERROR", "enum"},
		{execute("create_isue", map[string]any{}), "TOOL_NOT_FOUND", "nearest: create_issue"},
		{execute("delete_repo", map[string]any{}), "TOOL_DISABLED", "disables it"},
		{execute("create_issue", "text"), "VALIDATION_ERROR", "arguments is not an object"},
		{map[string]any{"tool": "create_issue"}, "VALIDATION_ERROR", "server is missing"},
		{map[string]any{"server": "one"}, "VALIDATION_ERROR", "tool is missing"},
		{map[string]any{"server": "onne", "tool": "x"}, "TOOL_NOT_FOUND", "nearest: one"},
	} {
		f := v.fails("execute_tool", tt.arguments)
		if f.Error.Code != tt.code || !strings.Contains(f.Error.Message, tt.mentioned) {
			t.Errorf("execute_tool(%v) = %+v, want %s with %s", tt.arguments, f.Error, tt.code, tt.mentioned)
		}
		if tt.code == "TOOL_VALIDATION_ERROR" && (f.Error.Details["inputSchema"] == nil || f.Error.Details["problem"] == "" || f.Error.Server != "one" || f.Error.Tool != "create_issue") {
			t.Errorf("execute_tool(%v) = %+v, want the schema in its details", tt.arguments, f.Error)
		}
	}
	if one.called() > 0 {
		t.Errorf("the server was called %d times by calls that were refused", one.called())
	}
	// The server's result and its failure come as they are.
	for tool, want := range map[string]string{
		"create_issue": `{"content":[], "vendor":1e400, "arguments":{"repo":"a/b",  "title":"x","n":9007199254740993}}`,
		"fails":        `{"isError":true,  "content":[{"type":"text","text":"rate limit"}]}`,
	} {
		got, err := v.Desk.Execute(t.Context(), call.Client{Principal: principal.Local, Session: "s"}, "one", tool, json.RawMessage(`{"repo":"a/b",  "title":"x","n":9007199254740993}`))
		if err != nil || string(got) != want {
			t.Errorf("Execute(%s) = %s, %v, want %s", tool, got, err, want)
		}
	}
}

// The details of a tool start its server, so that the call that follows finds
// it; unless nobody wants that.
func TestAnticipate(t *testing.T) {
	for _, anticipate := range []bool{true, false} {
		v := visit(t, gatewaytest.Options{}, github(), nil)
		v.Desk.Anticipate = anticipate
		v.add("one")
		_, err := v.Fleet.Stop(t.Context(), "one")
		check(t, err)
		started := v.Fake.Started()
		v.call("get_tool_details", map[string]any{"server": "one", "tool": "list_repos"})
		v.call("execute_tool", map[string]any{"server": "one", "tool": "list_repos", "arguments": map[string]any{}})
		if got := v.Fake.Started() - started; got != 1 {
			t.Errorf("started %d times, want 1", got)
		}
		_, err = v.Fleet.Stop(t.Context(), "one")
		check(t, err)
		v.call("get_tool_details", map[string]any{"server": "one", "tool": "list_repos"})
		if !anticipate {
			if running := v.Fleet.Running(); len(running) > 0 {
				t.Errorf("running without anticipation: %v", running)
			}
			continue
		}
		for len(v.Fleet.Running()) == 0 { // it begins after the answer
			if t.Context().Err() != nil {
				t.Fatal("the server is not started")
			}
			runtime.Gosched()
		}
	}
}

// What is behind the tools is said where agents read it.
func TestNamesAreSaid(t *testing.T) {
	v := visit(t, gatewaytest.Options{Active: []string{"one", "two"}}, github(), nil)
	list, err := v.session.ListTools(t.Context(), nil)
	check(t, err)
	i := slices.IndexFunc(list.Tools, func(t *mcp.Tool) bool { return t.Name == "search_tools" })
	if i < 0 || !strings.HasSuffix(list.Tools[i].Description, " Servers: one, two.") {
		t.Errorf("tools %v, want search_tools with the names of the servers", list.Tools)
	}
	if said := v.session.InitializeResult().Instructions; !strings.Contains(said, "start on use: one, two.") {
		t.Errorf("instructions = %s, want the names of the servers", said)
	}
	for n, want := range map[int]string{0: "", 2: "server-0, server-1", 300: "server-0, server-1, "} {
		names := make([]string, n)
		for i := range names {
			names[i] = "server-" + string(rune('0'+i%10))
		}
		got := meta.Names(names)
		if !strings.HasPrefix(got, want) || len(got) > 600 || n == 300 && !strings.Contains(got, " more") {
			t.Errorf("Names(%d) = %s", n, got)
		}
	}
}

// A server that somebody else runs is never called local, nor installed.
func TestFindNamesThePlace(t *testing.T) {
	const entries = `version: 1
servers:
  one: {remote: {url: "https://mcp.example.com/mcp", transport: streamable-http}, description: Away}
  two: {image: test/two, description: Here}
`
	v := visit(t, gatewaytest.Options{Catalog: entries}, nil, nil)
	var found struct{ Servers []any }
	said := v.fetch("mcp_find", map[string]any{"query": "anything"}, &found)
	for _, want := range []string{"- one (remote, not active): Away", "- two (local, "} {
		if !strings.Contains(said, want) || len(found.Servers) != 2 {
			t.Errorf("mcp_find = %s, want %s", said, want)
		}
	}
}
