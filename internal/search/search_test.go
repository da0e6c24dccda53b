package search_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/search"
)

// catalog has servers of the kind that a catalog has.
func catalog() []search.Server {
	return []search.Server{
		{
			Name: "playwright", Title: "Playwright", Description: "Browser automation: navigation, clicks, screenshots, DOM inspection",
			Keywords: []string{"browser", "web", "automation", "screenshot", "click", "navigate", "scrape"}, Tags: []string{"browser"},
			Tools: []search.Tool{{Name: "browser_navigate"}, {Name: "browser_take_screenshot"}, {Name: "browser_click"}},
		},
		{
			Name: "brightdata-scraper", Title: "Bright Data Scraper",
			Description: "Web scraping at scale, of any website, with rotating proxies and CAPTCHA solving",
			Keywords:    []string{"scrape", "scraping", "web data", "extract", "crawl", "proxy"}, Tags: []string{"web", "scraping"},
		},
		{
			Name: "filesystem", Title: "Filesystem", Description: "Read, write and search files in the folders that you allow",
			Keywords: []string{"file", "files", "directory", "folder", "read", "write"}, Tags: []string{"files"},
			Tools: []search.Tool{{Name: "read_text_file"}, {Name: "write_file"}, {Name: "list_directory"}, {Name: "search_files"}},
		},
		{
			Name: "memory", Title: "Memory", Description: "A knowledge graph that remembers between sessions",
			Keywords: []string{"memory", "remember", "knowledge", "graph"}, Tools: []search.Tool{{Name: "create_entities"}, {Name: "search_nodes"}},
		},
		{
			Name: "sqlite", Title: "SQLite", Description: "Query and change a SQLite database file",
			Keywords: []string{"sqlite", "database", "sql", "query"}, Tags: []string{"database"},
		},
		{
			Name: "postgres", Title: "PostgreSQL", Description: "Query and inspect a PostgreSQL database",
			Keywords: []string{"postgres", "postgresql", "database", "sql", "query", "schema"}, Tags: []string{"database"},
		},
		{
			Name: "github", Title: "GitHub", Description: "Repositories, issues, pull requests and code search on GitHub",
			Keywords: []string{"github", "repository", "issue", "pull request", "pr", "code review"}, Tags: []string{"development"},
			Tools: []search.Tool{
				{Name: "createPullRequest", Description: "Open a pull request"},
				{
					Name: "create_issue", Description: "Create a new GitHub issue with title and body", Tags: []string{"Issues"},
					Parameters: []search.Parameter{{Name: "repo", Description: "owner/repository"}, {Name: "assignee", Description: "Who should work on it"}},
				},
				{Name: "update_issue", Description: "Update an existing GitHub issue", Tags: []string{"issues"}},
				{Name: "delete_repository", Description: "Delete a repository", Disabled: true},
			},
		},
		{
			Name: "slack", Title: "Slack", Description: "Read and send messages in Slack channels",
			Keywords: []string{"slack", "chat", "message", "channel"},
			Tools:    []search.Tool{{Name: "slack_post_message", Description: "Post a message to a channel"}},
		},
		{
			Name: "google-drive", Title: "Google Drive", Description: "Find and read documents in Google Drive",
			Keywords: []string{"google", "drive", "document", "spreadsheet"}, Tools: []search.Tool{{Name: "gdrive_search"}},
		},
		{Name: "café", Title: "Café", Description: "Koffie naïve façade"},
		{Name: "tenki", Title: "天気予報", Description: "東京の天気予報を取得します", Tools: []search.Tool{{Name: "yohou", Description: "東京の天気予報を取得します"}}},
		{Name: "ditu", Title: "地图服务", Description: "查询地址和路线规划", Tools: []search.Tool{{Name: "route_plan", Description: "查询地址和路线规划"}}},
		{Name: "cinema", Description: "Films that are on near you"},
		{Name: "wetter", Description: "Forecast for any place on earth"},
	}
}

// names are those of the servers, and "server/tool" of tools.
func names(hits []search.Hit) []string {
	all := []string{}
	for _, hit := range hits {
		all = append(all, strings.TrimSuffix(hit.Server+"/"+hit.Tool, "/"))
	}
	return all
}

func TestSearchServers(t *testing.T) {
	index := search.NewServers(catalog())
	tests := []struct {
		query string
		want  string
	}{
		{"postgres", "postgres"},
		{"PostgreSQL", "postgres"},
		{"postgres database", "postgres"},
		{"sqlite file", "sqlite"},
		{"query my SQLite database", "sqlite"},
		{"take a screenshot of a page", "playwright"},
		{"scraping websites", "brightdata-scraper"},
		{"crawler", "brightdata-scraper"},
		{"read a file", "filesystem"},
		{"list directories", "filesystem"},
		{"read_text_file", "filesystem"},
		{"readTextFile", "filesystem"},
		{"send a message", "slack"},
		{"post-message", "slack"},
		{"open a pull request", "github"},
		{"pull_request", "github"},
		{"create PR", "github"},
		{"remember things", "memory"},
		{"Google Drive", "google-drive"},
		{"googledrive", "google-drive"},
		{"google_drive", "google-drive"},
		{"knowledge graph", "memory"},
		// A typing mistake, and a word that is only begun.
		{"postgers", "postgres"},
		{"githb", "github"},
		{"playwrihgt", "playwright"},
		{"filsystm", "filesystem"},
		{"screensho", "playwright"},
		{"repo", "github"},
		{"spreadsheeting", "google-drive"},
		// Other words for the same, and for the same subject.
		{"movie", "cinema"},
		{"will I need an umbrella", "wetter"},
		{"git merge requests", "github"},
		// Other letters.
		{"CAFÉ", "café"},
		{"façade", "café"},
		{"天気", "tenki"},
		{"東京", "tenki"},
		{"路线", "ditu"},
		{"查询路线", "ditu"},
		// Only words that say nothing.
		{"the", "filesystem"},
	}
	for _, tt := range tests {
		got := index.Search(search.Query{Text: tt.query, Limit: 5})
		if len(got) == 0 || got[0].Server != tt.want {
			t.Errorf("Search(%q) = %v, want %s first", tt.query, got, tt.want)
		}
	}
}

func TestSearchTools(t *testing.T) {
	index := search.NewTools(catalog())
	tests := []struct {
		query search.Query
		want  []string
	}{
		{search.Query{Text: "github issue create", Limit: 2}, []string{"github/create_issue", "github/update_issue"}},
		{search.Query{Text: "create_issue", Limit: 1}, []string{"github/create_issue"}},
		{search.Query{Text: "Create Issue", Limit: 1}, []string{"github/create_issue"}},
		{search.Query{Text: "read file", Limit: 1}, []string{"filesystem/read_text_file"}},
		{search.Query{Text: "publish to a channel", Limit: 1}, []string{"slack/slack_post_message"}},
		{search.Query{Text: "assignee", Limit: 1}, []string{"github/create_issue"}},
		{search.Query{Text: "file", Server: "github", Limit: 5}, []string{}},
		{search.Query{Text: "search", Server: "memory", Limit: 1}, []string{"memory/search_nodes"}},
		{search.Query{Text: "create or change something", Tag: "issues", Limit: 5}, []string{"github/create_issue", "github/update_issue"}},
		{search.Query{Text: "create_issue", Tag: "DEVELOPMENT", Limit: 1}, []string{"github/create_issue"}},
		{search.Query{Text: "delete_repository", Tag: "development", Limit: 9}, nil},
		{search.Query{Text: "delete_repository", IncludeDisabled: true, Limit: 1}, []string{"github/delete_repository"}},
		{search.Query{Text: "天気予報", Limit: 1}, []string{"tenki/yohou"}},
		// Several things at once: each is found.
		{search.Query{Text: "Take a screenshot. Then post a message to the channel.", Limit: 2}, []string{"slack/slack_post_message", "playwright/browser_take_screenshot"}},
	}
	for _, tt := range tests {
		got := names(index.Search(tt.query))
		if tt.want == nil {
			if slices.Contains(got, "github/delete_repository") {
				t.Errorf("Search(%+v) = %v, want no disabled tool", tt.query, got)
			}
			continue
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("Search(%+v) differs (-want +got):\n%s", tt.query, diff)
		}
	}
}

func TestSearchNothing(t *testing.T) {
	index := search.NewServers(catalog())
	for _, query := range []string{"", "  ", "?!", "zzz", "xylophone", "w17q", "한국어"} {
		if got := index.Search(search.Query{Text: query, Limit: 5}); len(got) != 0 {
			t.Errorf("Search(%q) = %v, want nothing", query, got)
		}
	}
	for _, limit := range []int{0, -1} {
		if got := index.Search(search.Query{Text: "database", Limit: limit}); len(got) != 0 {
			t.Errorf("Search(database, %d) = %v, want nothing", limit, got)
		}
	}
	for _, empty := range []*search.Index{search.NewServers(nil), search.NewTools(nil), search.NewTools([]search.Server{{Name: "bare"}})} {
		if got := empty.Search(search.Query{Text: "database. file server. bare", Limit: 5}); len(got) != 0 {
			t.Errorf("Search in nothing = %v, want nothing", got)
		}
	}
}

func TestRelevance(t *testing.T) {
	index := search.NewServers(catalog())
	first := func(query string) search.Hit {
		hits := index.Search(search.Query{Text: query, Limit: 1})
		if len(hits) == 0 {
			t.Fatalf("Search(%q) = nothing, want a hit", query)
		}
		return hits[0]
	}
	for _, name := range []string{"postgres", " Postgres ", "google-drive", "Google Drive", "google_drive", "café"} {
		got := index.Search(search.Query{Text: name, Limit: 3})
		if len(got) == 0 || got[0].Relevance != 1 {
			t.Errorf("Search(%q) = %v, want a first relevance of 1", name, got)
			continue
		}
		for _, hit := range got[1:] {
			if hit.Relevance >= 1 || hit.Relevance <= 0 {
				t.Errorf("Search(%q) = %v, want the others between 0 and 1", name, got)
			}
		}
	}
	right, wrong := first("slack messages"), first("slakc messages")
	if right.Server != "slack" || wrong.Server != "slack" || right.Relevance <= wrong.Relevance || right.Relevance >= 1 {
		t.Errorf("Search = %v, with a mistake %v, want slack, and less with the mistake", right, wrong)
	}
	if all, some := first("database"), first("database hovercraft"); all.Relevance <= some.Relevance {
		t.Errorf("Search = %v, with a word that is not there %v, want less", all, some)
	}
}

// The example of a discovery: the tool that does it is far ahead of others.
func TestRelevanceOfTools(t *testing.T) {
	got := search.NewTools(catalog()).Search(search.Query{Text: "github issue create", Limit: 10})
	if len(got) < 2 || got[0].Tool != "create_issue" || got[0].Relevance < 0.85 || got[0].Relevance >= 1 || got[1].Relevance > got[0].Relevance-0.03 {
		t.Errorf("Search(github issue create) = %v, want create_issue first, clearly, and under 1", got)
	}
	for _, hit := range got {
		if hit.Relevance < 0.05 {
			t.Errorf("Search(github issue create) = %v, want nothing by chance", hit)
		}
	}
}

// The same word in one place each: the name is worth more than a part of it,
// that more than a description, and a tag least.
func TestFieldOrder(t *testing.T) {
	server := search.Server{Name: "s", Tools: []search.Tool{
		{Name: "tagged", Tags: []string{"kiwi"}},
		{Name: "with_parameter", Parameters: []search.Parameter{{Name: "kiwi"}}},
		{Name: "described", Description: "kiwi"},
		{Name: "titled", Title: "kiwi"},
		{Name: "kiwi_fruit"},
		{Name: "kiwi"},
		{Name: "other"},
	}}
	got := names(search.NewTools([]search.Server{server}).Search(search.Query{Text: "kiwi", Limit: 10}))
	want := []string{"s/kiwi", "s/kiwi_fruit", "s/titled", "s/described", "s/with_parameter", "s/tagged"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Search(kiwi) of tools differs (-want +got):\n%s", diff)
	}
	servers := []search.Server{
		{Name: "tagged", Tags: []string{"kiwi"}},
		{Name: "tooled", Tools: []search.Tool{{Name: "kiwi"}}},
		{Name: "described", Description: "kiwi"},
		{Name: "keyed", Keywords: []string{"kiwi"}},
		{Name: "titled", Title: "kiwi"},
		{Name: "kiwi-fruit"},
		{Name: "kiwi"},
		{Name: "other"},
	}
	got = names(search.NewServers(servers).Search(search.Query{Text: "kiwi", Limit: 10}))
	want = []string{"kiwi", "kiwi-fruit", "titled", "keyed", "described", "tooled", "tagged"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Search(kiwi) of servers differs (-want +got):\n%s", diff)
	}
}

func TestLongText(t *testing.T) {
	long := strings.Repeat("other words about nothing ", 50)
	index := search.NewServers([]search.Server{{Name: "long", Description: "kiwi " + long}, {Name: "short", Description: "kiwi juice"}})
	if got := names(index.Search(search.Query{Text: "kiwi", Limit: 10})); !slices.Equal(got, []string{"short", "long"}) {
		t.Errorf("Search(kiwi) = %v, want the short text first", got)
	}
}

// The order of the servers, and that of maps, does not show.
func TestDeterministic(t *testing.T) {
	servers := catalog()
	for i := range 20 {
		servers = append(servers, search.Server{Name: fmt.Sprintf("twin-%02d", i), Description: "a twin of the database"})
	}
	var want []search.Hit
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 20 {
		random.Shuffle(len(servers), func(a, b int) { servers[a], servers[b] = servers[b], servers[a] })
		got := search.NewServers(servers).Search(search.Query{Text: "databse twin", Limit: 15})
		if i == 0 {
			want = got
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("Search differs from build to build (-first +later):\n%s", diff)
		}
	}
	if len(want) != 15 || want[0].Server != "twin-00" || want[14].Server != "twin-14" {
		t.Errorf("Search = %v, want 15 twins in the order of their names", want)
	}
}

// queries is a bit of everything, for comparing indexes.
func queries() []string {
	return []string{
		"database", "create issue", "githb", "the", "movie", "天気", "Take a screenshot. Then post a message.",
		"w1 w2 w3 w5", "w17 database", "server7", "alpha_w3", "file w40 issues",
	}
}

func same(t *testing.T, what string, want, got *search.Index) {
	t.Helper()
	if want.Len() != got.Len() {
		t.Fatalf("%s: Len = %d, want %d", what, got.Len(), want.Len())
	}
	for _, text := range queries() {
		q := search.Query{Text: text, IncludeDisabled: true, Limit: 50}
		if diff := cmp.Diff(want.Search(q), got.Search(q)); diff != "" {
			t.Fatalf("%s: Search(%q) differs from a new index (-new +changed):\n%s", what, text, diff)
		}
	}
}

// made is a server out of some words; its version changes them.
func made(number, version int) search.Server {
	random := rand.New(rand.NewPCG(uint64(number), uint64(version))) //nolint:gosec // small
	word := func() string { return fmt.Sprintf("w%d", int(random.ExpFloat64()*20)) }
	s := search.Server{Name: fmt.Sprintf("server%d", number), Description: word() + " " + word(), Tags: []string{word()}}
	for range 1 + random.IntN(4) {
		s.Tools = append(s.Tools, search.Tool{
			Name: fmt.Sprintf("alpha_%s_%d", word(), len(s.Tools)), Description: word() + " the issue " + word(), Disabled: random.IntN(5) == 0,
			Parameters: []search.Parameter{{Name: word(), Description: word()}},
		})
	}
	return s
}

// However an index came to hold its servers, it finds the same.
func TestChanges(t *testing.T) {
	for _, build := range []func([]search.Server) *search.Index{search.NewTools, search.NewServers} {
		index := build(catalog())
		current := make(map[string]search.Server)
		for _, s := range catalog() {
			current[s.Name] = s
		}
		random := rand.New(rand.NewPCG(3, 4))
		for step := range 400 {
			s := made(random.IntN(40), random.IntN(5))
			if random.IntN(3) == 0 {
				index.Remove(s.Name)
				delete(current, s.Name)
			} else {
				index.Put(s)
				current[s.Name] = s
			}
			if step%40 == 0 {
				var servers []search.Server
				for _, s := range current {
					servers = append(servers, s)
				}
				same(t, fmt.Sprintf("after %d changes", step+1), build(servers), index)
			}
		}
		for name := range current {
			index.Remove(name)
		}
		index.Remove("never was")
		same(t, "emptied", build(nil), index)
	}
}

// Words that come and go are found by their beginnings, and with mistakes, as
// in a new index.
func TestChangedWords(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	word := func() string {
		var b strings.Builder
		for range 3 + random.IntN(2) {
			b.WriteByte("bcdfglmnprst"[random.IntN(12)])
			b.WriteByte("aeiou"[random.IntN(5)])
		}
		return b.String()
	}
	words := make([]string, 3000)
	for i := range words {
		words[i] = word()
	}
	current := make(map[string]search.Server)
	put := func(number int) search.Server {
		text := make([]string, 20)
		for i := range text {
			text[i] = words[random.IntN(len(words))]
		}
		s := search.Server{Name: fmt.Sprintf("server%d", number), Tools: []search.Tool{{Name: "tool", Description: strings.Join(text, " ")}}}
		current[s.Name] = s
		return s
	}
	all := func() []search.Server { return slices.Collect(maps.Values(current)) }
	for number := range 100 {
		put(number)
	}
	index := search.NewTools(all())
	for step := range 300 {
		if number := random.IntN(100); random.IntN(3) == 0 {
			name := fmt.Sprintf("server%d", number)
			index.Remove(name)
			delete(current, name)
		} else {
			index.Put(put(number))
		}
		if step%50 != 0 {
			continue
		}
		fresh := search.NewTools(all())
		for range 100 {
			asked := words[random.IntN(len(words))]
			i := 1 + random.IntN(len(asked)-1)
			for _, text := range []string{asked, asked[:i], asked[:i] + asked[i+1:]} {
				q := search.Query{Text: text, Limit: 50}
				if diff := cmp.Diff(fresh.Search(q), index.Search(q)); diff != "" {
					t.Fatalf("after %d changes, Search(%q) differs from a new index (-new +changed):\n%s", step+1, text, diff)
				}
			}
		}
	}
}

// An index does not grow with the number of its changes.
func TestManyChanges(t *testing.T) {
	index := search.NewTools(catalog())
	for i := range 12_000 {
		index.Put(search.Server{Name: "busy", Tools: []search.Tool{{Name: fmt.Sprintf("tool%d", i), Description: "database"}}})
	}
	want := append(catalog(), search.Server{Name: "busy", Tools: []search.Tool{{Name: "tool11999", Description: "database"}}})
	same(t, "after 12,000 changes", search.NewTools(want), index)
}

func TestSameNameTwice(t *testing.T) {
	index := search.NewServers([]search.Server{{Name: "a", Description: "first"}, {Name: "a", Description: "second"}})
	if got := names(index.Search(search.Query{Text: "second", Limit: 5})); !slices.Equal(got, []string{"a"}) {
		t.Errorf("Search(second) = %v, want a", got)
	}
	if got := names(index.Search(search.Query{Text: "first", Limit: 5})); len(got) != 0 {
		t.Errorf("Search(first) = %v, want nothing: the later entry replaces it", got)
	}
}

// Queries and changes at the same time: each query sees a whole server or none
// of it. The race detector watches.
func TestConcurrently(t *testing.T) {
	index := search.NewTools(catalog())
	both := func(word string) search.Server {
		return search.Server{Name: "pair", Tools: []search.Tool{{Name: "left", Description: word}, {Name: "right", Description: word}}}
	}
	index.Put(both("kiwi"))
	var readers, writers sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				n := len(index.Search(search.Query{Text: "kiwi", Server: "pair", Limit: 5}))
				if n != 0 && n != 2 {
					t.Errorf("Search(kiwi) = %d hits, want both or none", n)
					return
				}
				index.Search(search.Query{Text: "databse file. Post the message", Limit: 5})
			}
		})
	}
	for writer := range 2 {
		writers.Go(func() {
			for i := range 150 {
				switch (i + writer) % 3 {
				case 0:
					index.Put(both("kiwi"))
				case 1:
					index.Put(both("papaya"))
				default:
					index.Remove("pair")
				}
				index.Put(made(i%7, i))
			}
		})
	}
	writers.Wait()
	close(stop)
	readers.Wait()
}

func FuzzSearch(f *testing.F) {
	for _, query := range []string{"read file", "getHTMLPage", "ünïcödé", "\xff\xfe", strings.Repeat("a b ", 100), "İ", "天気 forecast. 路线! a?", "é\u0301\u0301"} {
		f.Add(query)
	}
	index := search.NewServers(catalog())
	f.Fuzz(func(t *testing.T, text string) {
		for _, hit := range index.Search(search.Query{Text: text, Limit: 3}) {
			if !(hit.Relevance > 0 && hit.Relevance <= 1) {
				t.Errorf("Search(%q) = %v, want a relevance over 0 and at most 1", text, hit)
			}
		}
		own := search.NewTools([]search.Server{{Name: text, Tools: []search.Tool{{Name: text, Description: text}, {Name: "other"}}}})
		for _, hit := range own.Search(search.Query{Text: text, Limit: 3}) {
			if !(hit.Relevance > 0 && hit.Relevance <= 1) {
				t.Errorf("Search(%q) in itself = %v, want a relevance over 0 and at most 1", text, hit)
			}
		}
		own.Remove(text)
		if got := own.Search(search.Query{Text: text, Limit: 3}); len(got) > 0 || own.Len() != 0 {
			t.Errorf("Search(%q) after Remove = %v, want nothing", text, got)
		}
	})
}
