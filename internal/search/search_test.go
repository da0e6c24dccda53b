package search_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/search"
)

// servers are of the kind that a catalog has.
func servers() []search.Document {
	return []search.Document{
		{
			ID: "playwright", Name: "playwright", Title: "Playwright", Description: "Browser automation: navigation, clicks, screenshots, DOM inspection",
			Keywords: []string{"browser", "web", "automation", "screenshot", "click", "navigate", "scrape"}, Tags: []string{"browser"},
			Tools: []string{"browser_navigate", "browser_take_screenshot", "browser_click"},
		},
		{
			ID: "brightdata-scraper", Name: "brightdata-scraper", Title: "Bright Data Scraper",
			Description: "Web scraping at scale, of any website, with rotating proxies and CAPTCHA solving",
			Keywords:    []string{"scrape", "scraping", "web data", "extract", "crawl", "proxy"}, Tags: []string{"web", "scraping"},
		},
		{
			ID: "filesystem", Name: "filesystem", Title: "Filesystem", Description: "Read, write and search files in the folders that you allow",
			Keywords: []string{"file", "files", "directory", "folder", "read", "write"}, Tags: []string{"files"},
			Tools: []string{"read_text_file", "write_file", "list_directory", "search_files"},
		},
		{
			ID: "memory", Name: "memory", Title: "Memory", Description: "A knowledge graph that remembers between sessions",
			Keywords: []string{"memory", "remember", "knowledge", "graph"}, Tools: []string{"create_entities", "search_nodes"},
		},
		{
			ID: "sqlite", Name: "sqlite", Title: "SQLite", Description: "Query and change a SQLite database file",
			Keywords: []string{"sqlite", "database", "sql", "query"}, Tags: []string{"database"},
		},
		{
			ID: "postgres", Name: "postgres", Title: "PostgreSQL", Description: "Query and inspect a PostgreSQL database",
			Keywords: []string{"postgres", "postgresql", "database", "sql", "query", "schema"}, Tags: []string{"database"},
		},
		{
			ID: "github", Name: "github", Title: "GitHub", Description: "Repositories, issues, pull requests and code search on GitHub",
			Keywords: []string{"github", "repository", "issue", "pull request", "pr", "code review"}, Tags: []string{"development"},
			Tools: []string{"createPullRequest", "searchCode", "listIssues"},
		},
		{
			ID: "slack", Name: "slack", Title: "Slack", Description: "Read and send messages in Slack channels",
			Keywords: []string{"slack", "chat", "message", "channel"}, Tools: []string{"slack_post_message"},
		},
		{
			ID: "google-drive", Name: "google-drive", Title: "Google Drive", Description: "Find and read documents in Google Drive",
			Keywords: []string{"google", "drive", "document", "spreadsheet"}, Tools: []string{"gdrive_search"},
		},
		{ID: "cafe", Name: "café", Title: "Café", Description: "Koffie naïve façade"},
	}
}

func ids(hits []search.Hit) []string {
	var all []string
	for _, hit := range hits {
		all = append(all, hit.ID)
	}
	return all
}

func TestSearchFirst(t *testing.T) {
	index := search.Build(servers())
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
		{"knowledge graph", "memory"},
		// A typing mistake, and a word that is only begun.
		{"postgers", "postgres"},
		{"githb", "github"},
		{"playwrihgt", "playwright"},
		{"filsystm", "filesystem"},
		{"screensho", "playwright"},
		{"repo", "github"},
		{"spreadsheeting", "google-drive"},
		// Other letters.
		{"CAFÉ", "cafe"},
		{"façade", "cafe"},
		// Only words that say nothing.
		{"the", "filesystem"},
	}
	for _, tt := range tests {
		got := index.Search(tt.query, 5)
		if len(got) == 0 || got[0].ID != tt.want {
			t.Errorf("Search(%q) = %v, want %s first", tt.query, got, tt.want)
		}
	}
}

func TestSearchNothing(t *testing.T) {
	index := search.Build(servers())
	for _, query := range []string{"", "  ", "?!", "zzz", "xylophone", "日本語"} {
		if got := index.Search(query, 5); len(got) != 0 {
			t.Errorf("Search(%q) = %v, want nothing", query, got)
		}
	}
	for _, limit := range []int{0, -1} {
		if got := index.Search("database", limit); len(got) != 0 {
			t.Errorf("Search(database, %d) = %v, want nothing", limit, got)
		}
	}
	if got := search.Build(nil).Search("database", 5); len(got) != 0 {
		t.Errorf("Search in nothing = %v, want nothing", got)
	}
}

func TestSearchScores(t *testing.T) {
	index := search.Build(servers())
	for _, name := range []string{"postgres", " Postgres ", "google-drive", "Google Drive", "google_drive", "café"} {
		got := index.Search(name, 3)
		if len(got) == 0 || got[0].Score != 1 {
			t.Errorf("Search(%q) = %v, want a first score of 1", name, got)
		}
		for _, hit := range got[1:] {
			if hit.Score >= 1 || hit.Score <= 0 {
				t.Errorf("Search(%q) = %v, want the others between 0 and 1", name, got)
			}
		}
	}
	right, wrong := index.Search("slack messages", 1)[0], index.Search("slakc messages", 1)[0]
	if right.ID != "slack" || wrong.ID != "slack" || right.Score <= wrong.Score || right.Score >= 1 {
		t.Errorf("Search = %v, with a mistake %v, want slack, and less with the mistake", right, wrong)
	}
	if all, some := index.Search("database", 1)[0], index.Search("database hovercraft", 1)[0]; all.Score <= some.Score {
		t.Errorf("Search = %v, with a word that is not there %v, want less", all, some)
	}
}

func TestSearchFields(t *testing.T) {
	// The same word in one field each, best first.
	documents := []search.Document{
		{ID: "7", Text: []string{"kiwi"}},
		{ID: "6", Description: "kiwi"},
		{ID: "4", Tags: []string{"kiwi"}},
		{ID: "3", Title: "kiwi"},
		{ID: "2", Keywords: []string{"kiwi"}},
		{ID: "1", Name: "kiwi fruit"},
		{ID: "5", Tools: []string{"kiwi"}},
		{ID: "8", Name: "other"},
	}
	got := ids(search.Build(documents).Search("kiwi", 10))
	if diff := cmp.Diff([]string{"1", "2", "3", "4", "5", "6", "7"}, got); diff != "" {
		t.Errorf("Search(kiwi) differs (-want +got):\n%s", diff)
	}
}

func TestSearchLongText(t *testing.T) {
	long := strings.Repeat("other words about nothing ", 50)
	documents := []search.Document{
		{ID: "long", Description: "kiwi " + long},
		{ID: "short", Description: "kiwi juice"},
	}
	if got := ids(search.Build(documents).Search("kiwi", 10)); !slices.Equal(got, []string{"short", "long"}) {
		t.Errorf("Search(kiwi) = %v, want the short text first", got)
	}
}

// The order of the documents, and that of maps, does not show.
func TestSearchDeterministic(t *testing.T) {
	documents := servers()
	for i := range 20 {
		documents = append(documents, search.Document{ID: fmt.Sprintf("twin-%02d", i), Description: "a twin of the database"})
	}
	var want []search.Hit
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 20 {
		random.Shuffle(len(documents), func(a, b int) { documents[a], documents[b] = documents[b], documents[a] })
		got := search.Build(documents).Search("databse twin", 15)
		if i == 0 {
			want = got
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("Search differs from build to build (-first +later):\n%s", diff)
		}
	}
	if len(want) != 15 || want[0].ID != "twin-00" || want[14].ID != "twin-14" {
		t.Errorf("Search = %v, want 15 twins in the order of their IDs", want)
	}
}

func TestSearchConcurrently(t *testing.T) {
	index := search.Build(servers())
	want := index.Search("web browser", 5)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 50 {
				if diff := cmp.Diff(want, index.Search("web browser", 5)); diff != "" {
					t.Errorf("Search differs (-want +got):\n%s", diff)
				}
			}
		})
	}
	group.Wait()
}

func FuzzSearch(f *testing.F) {
	for _, query := range []string{"read file", "getHTMLPage", "ünïcödé", "\xff\xfe", strings.Repeat("a b ", 100), "İ"} {
		f.Add(query)
	}
	index := search.Build(servers())
	f.Fuzz(func(t *testing.T, text string) {
		for _, hit := range index.Search(text, 3) {
			if !(hit.Score > 0 && hit.Score <= 1) {
				t.Errorf("Search(%q) = %v, want scores over 0 and at most 1", text, hit)
			}
		}
		own := search.Build([]search.Document{{ID: "own", Name: text, Description: text}, {ID: "other"}})
		for _, hit := range own.Search(text, 3) {
			if hit.ID == "own" && !(hit.Score > 0 && hit.Score <= 1) {
				t.Errorf("Search(%q) in itself = %v, want a score over 0 and at most 1", text, hit)
			}
		}
	})
}

// tools makes n documents out of a vocabulary of some thousand words.
func tools(n int) []search.Document {
	random := rand.New(rand.NewPCG(1, 2))
	word := func() string {
		number := int(random.ExpFloat64() * 800)
		return fmt.Sprintf("w%c%c%d", 'a'+number%26, 'a'+number/26%26, number)
	}
	words := func(n int) string {
		all := make([]string, n)
		for i := range all {
			all[i] = word()
		}
		return strings.Join(all, " ")
	}
	documents := make([]search.Document, n)
	for i := range documents {
		documents[i] = search.Document{ID: fmt.Sprint(i), Name: word() + "_" + word(), Description: words(20), Text: []string{words(30)}}
	}
	return documents
}

func BenchmarkBuild(b *testing.B) {
	documents := tools(10_000)
	for b.Loop() {
		search.Build(documents)
	}
}

func BenchmarkSearch(b *testing.B) {
	index := search.Build(tools(10_000))
	for _, query := range []string{"waa0", "waa0 wba1 wca2 wda3", "wab26x unknwon wbc99x"} {
		b.Run(query, func(b *testing.B) {
			for b.Loop() {
				index.Search(query, 10)
			}
		})
	}
}
