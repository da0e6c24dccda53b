package words_test

import (
	"slices"
	"testing"

	"github.com/dockgate/dockgate/internal/search/words"
)

func concepts(senses []words.Sense) []string {
	var all []string
	for _, s := range senses {
		all = append(all, s.Concept)
	}
	return all
}

func TestSenses(t *testing.T) {
	v := words.Load()
	tests := []struct{ a, b string }{
		{"picture", "photo"},
		{"movie", "film"},
		{"delete", "remove"},
		{"fetch", "retrieve"},
		{"send", "post"},
		{"repository", "repo"},
		{"hotel", "accommodation"},
		{"pull request", "merge request"},
		{"earthquake", "seismic"},
		{"lawyer", "court"},
	}
	for _, tt := range tests {
		share := slices.ContainsFunc(concepts(v.Senses(stems(tt.a))), func(c string) bool {
			return slices.Contains(concepts(v.Senses(stems(tt.b))), c)
		})
		if !share {
			t.Errorf("Senses(%q) = %v, Senses(%q) = %v, want one in common", tt.a, v.Senses(stems(tt.a)), tt.b, v.Senses(stems(tt.b)))
		}
	}
	for _, word := range []string{"xyzzy", "", "the"} {
		if got := v.Senses(word); len(got) > 0 {
			t.Errorf("Senses(%q) = %v, want none", word, got)
		}
	}
	if !v.Begins(words.Stem("pull")) || v.Begins("xyzzy") {
		t.Errorf("Begins(pull), Begins(xyzzy) = %v, %v, want true, false", v.Begins(words.Stem("pull")), v.Begins("xyzzy"))
	}
}

// stems returns those of a phrase.
func stems(phrase string) string {
	out, word := "", ""
	for _, r := range phrase + " " {
		if r != ' ' {
			word += string(r)
			continue
		}
		if out != "" {
			out += " "
		}
		out, word = out+words.Stem(word), ""
	}
	return out
}

func TestStem(t *testing.T) {
	for word, want := range map[string]string{"searching": "search", "cities": "citi", "ab": "ab", "naïve": "naïve", "v2x": "v2x"} {
		if got := words.Stem(word); got != want {
			t.Errorf("Stem(%q) = %q, want %q", word, got, want)
		}
	}
}

// What the files may hold: phrases that are not too long, and nothing that
// stands alone.
func TestFiles(t *testing.T) {
	if problems := words.Problems(); len(problems) > 0 {
		t.Errorf("Problems() = %q, want none", problems)
	}
	if n := words.Load().Len(); n < 3000 {
		t.Errorf("Len() = %d, want a vocabulary of thousands", n)
	}
}
