package near_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/search/near"
)

func terms(list ...string) map[string]uint64 {
	all := make(map[string]uint64)
	for _, word := range list {
		all[word] = term(word)
	}
	return all
}

// term is a different one for each word of the tests.
func term(word string) uint64 {
	t := uint64(0)
	for _, r := range word {
		t = t<<5 ^ uint64(r)
	}
	return t
}

func TestTo(t *testing.T) {
	known := []string{"calendar", "calendars", "database", "file", "files", "repository", "translate", "weather"}
	var words near.Words[uint64]
	words = words.Next(terms(known...), &near.Set[uint64]{})
	tests := []struct {
		asked string
		want  string
	}{
		{"calen", "calendar 0.8, calendars 0.8"},
		{"wether", "weather 0.7"},
		{"waether", "weather 0.7"},
		{"databse", "database 0.7"},
		{"repositroy", "repository 0.7"},
		{"repsitroy", "repository 0.5"},
		{"translated", "translate 0.7"},
		{"translations", ""},
		{"databases1", ""}, // an identifier
		{"fi", ""},
		{"fie", ""}, // too short to be mistyped
		{"elephant", ""},
	}
	for _, tt := range tests {
		var got []string
		for _, m := range words.To(tt.asked) {
			i := slices.IndexFunc(known, func(word string) bool { return term(word) == m.Term })
			got = append(got, fmt.Sprintf("%s %.1f", known[i], m.Likely))
		}
		if got := strings.Join(got, ", "); got != tt.want {
			t.Errorf("To(%q) = %s, want %s", tt.asked, got, tt.want)
		}
	}
}

// The next words have what is new and not what is gone, and leave the last ones
// as they were.
func TestNext(t *testing.T) {
	var all []string
	for i := range 300 {
		all = append(all, fmt.Sprintf("word%c%c%c", 'a'+i%26, 'a'+i/26, 'x'))
	}
	var words near.Words[uint64]
	first := words.Next(terms(all[:200]...), &near.Set[uint64]{})
	gone := &near.Set[uint64]{}
	for _, word := range all[:150] {
		gone.Add(term(word))
	}
	second := first.Next(terms(all[200:]...), gone)
	has := func(words near.Words[uint64]) []string {
		var found []string
		for _, word := range all {
			if slices.ContainsFunc(words.To(word), func(m near.Match[uint64]) bool { return m.Term == term(word) }) {
				found = append(found, word)
			}
		}
		return found
	}
	if diff := cmp.Diff(all[150:], has(second)); diff != "" {
		t.Errorf("the next words differ (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(all[:200], has(first)); diff != "" {
		t.Errorf("the words before have changed (-want +got):\n%s", diff)
	}
	if same := second.Next(nil, &near.Set[uint64]{}); len(same) != len(second) || &same[0] != &second[0] {
		t.Error("words without a change are not the same")
	}
}
