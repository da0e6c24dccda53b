package text_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/search/text"
)

func TestSplit(t *testing.T) {
	tests := []struct {
		text string
		want string // the words, each followed by its parts if it has some
	}{
		{"", ""},
		{"Read a file.", "read a file"},
		{"get_page-html", "get page html"},
		{"getPageHTML", "getpagehtml(get page html)"},
		{"parseHTMLPage2", "parsehtmlpage2(parse html page 2)"},
		{"URLs and IDs", "urls and ids"},
		{"s3cmd", "s3cmd(s 3 cmd)"},
		{"Zürich's café", "zürich s café"},
		{"读文件", "读文 文件"},
		{"读", "读"},
		{"read读文件all", "read 读文 文件 all"},
	}
	for _, tt := range tests {
		var got []string
		for _, w := range text.Split(tt.text) {
			said := w.Whole
			if w.Parts != nil {
				said += "(" + strings.Join(w.Parts, " ") + ")"
			}
			got = append(got, said)
		}
		if got := strings.Join(got, " "); got != tt.want {
			t.Errorf("Split(%q) = %s, want %s", tt.text, got, tt.want)
		}
	}
}

func TestSentences(t *testing.T) {
	tests := []struct {
		text string
		want []string
	}{
		{"Open example.com. Then read 3.5 files!", []string{"Open example.com", " Then read 3.5 files", ""}},
		{"one\ntwo; three", []string{"one", "two", " three"}},
		{"读文件。写文件", []string{"读文件", "写文件"}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, text.Sentences(tt.text)); diff != "" {
			t.Errorf("Sentences(%q) differs (-want +got):\n%s", tt.text, diff)
		}
	}
}

func TestFold(t *testing.T) {
	for name, want := range map[string]string{"get_Page HTML-2": "getpagehtml2", "Zürich!": "zürich", "...": ""} {
		if got := text.Fold(name); got != want {
			t.Errorf("Fold(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestIsStopWord(t *testing.T) {
	for word, want := range map[string]bool{"the": true, "please": true, "file": false, "": false} {
		if got := text.IsStopWord(word); got != want {
			t.Errorf("IsStopWord(%q) = %v, want %v", word, got, want)
		}
	}
}

// FuzzSplit holds that words are bounded, and in lower case as far as there is
// one.
func FuzzSplit(f *testing.F) {
	for _, seed := range []string{"getPageHTML", "读文件 all", "a\xffb", strings.Repeat("aB", 100), "ǅ"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, said string) {
		for _, w := range text.Split(said) {
			for _, word := range append(w.All(), w.Whole) {
				// A letter may have two in lower case, or marks.
				if n := utf8.RuneCountInString(word); n == 0 || n > 2*text.MaxWord {
					t.Errorf("Split(%q) has a word of %d letters, want 1 to %d", said, n, text.MaxWord)
				}
			}
		}
	})
}
