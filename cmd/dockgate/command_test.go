package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/outside"
)

// TestHelp holds every command to the same help: what it does, how it ends,
// and an example that can be run.
func TestHelp(t *testing.T) {
	var check func(cmd *cobra.Command)
	check = func(cmd *cobra.Command) {
		path := cmd.CommandPath()
		if path == "dockgate help" || path == "dockgate completion" { // cobra's own
			return
		}
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: Short = %q, want a phrase", path, cmd.Short)
		}
		if len(cmd.Commands()) == 0 || cmd.Example != "" {
			if !strings.Contains(cmd.Long, "Exit codes") {
				t.Errorf("%s: the long help does not say the exit codes", path)
			}
			if !strings.Contains(cmd.Example, path) && path != "dockgate" {
				t.Errorf("%s: Example = %q, want one of this command", path, cmd.Example)
			}
		}
		for _, line := range strings.Split(cmd.Long+"\n"+cmd.UsageString(), "\n") {
			if len(line) > 80 {
				t.Errorf("%s: a line of the help has %d characters, want at most 80: %q", path, len(line), line)
			}
		}
		for _, child := range cmd.Commands() {
			check(child)
		}
	}
	check(newRoot())
}

// TestPhrase holds every command to be named, in the image form, as it is
// typed on the host.
func TestPhrase(t *testing.T) {
	for _, cmd := range newRoot().Commands() {
		switch name := cmd.Name(); name {
		case "completion", "help", "disconnect", "gateway": // run on the host itself
		default:
			if !outside.Knows(name) {
				t.Errorf("package outside does not know the command %q: it has a list of those that need the engine, and one of others", name)
			}
		}
	}
}

func TestMoment(t *testing.T) {
	day := 24 * time.Hour
	tests := []struct {
		text      string
		direction direction
		want      time.Duration // from now
		err       string
	}{
		{"30d", ahead, 30 * day, ""},
		{"12h", ahead, 12 * time.Hour, ""},
		{"1h30m", back, -90 * time.Minute, ""},
		{"7d", back, -7 * day, ""},
		{"", ahead, 0, "want a distance"},
		{"d", ahead, 0, "want a distance"},
		{"-1d", ahead, 0, "want a distance"},
		{"0d", ahead, 0, "want a distance"},
		{"-5m", back, 0, "want a distance"},
		{"1.5d", ahead, 0, "want a distance"},
		{"999999999d", ahead, 0, "want a distance"},
		{"2030-13-01", ahead, 0, "want a distance"},
		{"2001-02-03", ahead, 0, "is in the past"},
		{"2001-02-03T04:05:06Z", ahead, 0, "is in the past"},
	}
	for _, tt := range tests {
		m := moment{direction: tt.direction}
		err := m.Set(tt.text)
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("Set(%q) = %v, want an error with %q", tt.text, err, tt.err)
			}
			continue
		}
		if got := time.Until(m.Time) - tt.want; err != nil || got > time.Minute || got < -time.Minute {
			t.Errorf("Set(%q) = %v, %v, want %v from now", tt.text, m.Time, err, tt.want)
		}
	}
	exact := map[string]time.Time{
		"2001-02-03":           time.Date(2001, 2, 3, 0, 0, 0, 0, time.Local),
		"2001-02-03T04:05:06Z": time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC),
	}
	for text, want := range exact {
		m := moment{direction: back}
		if err := m.Set(text); err != nil || !m.Equal(want) {
			t.Errorf("Set(%q) = %v, %v, want %v", text, m.Time, err, want)
		}
	}
}

func TestChosen(t *testing.T) {
	questions := []approval.Question{{ID: "a"}, {ID: "b"}, {ID: "c"}}
	tests := []struct {
		answer string
		want   string
		err    string
	}{
		{"", "", ""},
		{"all", "abc", ""},
		{"ALL", "abc", ""},
		{"2", "b", ""},
		{"3 1", "ca", ""},
		{"1,1, 2", "ab", ""},
		{"0", "", `"0" is not a number from 1 to 3`},
		{"1 4", "", `"4" is not a number from 1 to 3`},
		{"fetch", "", `"fetch" is not a number from 1 to 3`},
	}
	for _, tt := range tests {
		got, err := chosen(tt.answer, questions)
		var ids, text strings.Builder
		for _, q := range got {
			ids.WriteString(q.ID)
		}
		if err != nil {
			text.WriteString(err.Error())
		}
		if ids.String() != tt.want || text.String() != tt.err {
			t.Errorf("chosen(%q) = %q, %q, want %q, %q", tt.answer, ids.String(), text.String(), tt.want, tt.err)
		}
	}
}

func TestClean(t *testing.T) {
	tests := map[string]string{
		"plain text":           "plain text",
		"grüße, 世界 ✓":          "grüße, 世界 ✓",
		"\x1b[2Jgone":          "\uFFFD[2Jgone",
		"over\rwritten":        "over\uFFFDwritten",
		"two\nlines":           "two\uFFFDlines",
		"a\tb":                 "a b",
		"right\u202eto left":   "right\uFFFDto left",
		"bell\a, back\b, \x9b": "bell\uFFFD, back\uFFFD, \uFFFD",
	}
	for text, want := range tests {
		if got := clean(text); got != want {
			t.Errorf("clean(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestShorten(t *testing.T) {
	tests := []struct {
		text  string
		width int
		want  string
	}{
		{"short", 10, "short"},
		{"exactly ten", 11, "exactly ten"},
		{"cut at a word", 12, "cut at a…"},
		{"cut, here it is", 7, "cut…"},
		{"unbreakable", 6, "unbre…"},
		{"äöüäöü", 4, "äöü…"},
	}
	for _, tt := range tests {
		if got := shorten(tt.text, tt.width); got != tt.want {
			t.Errorf("shorten(%q, %d) = %q, want %q", tt.text, tt.width, got, tt.want)
		}
	}
}

func TestShortenLast(t *testing.T) {
	header := []string{"NAME", "TEXT"}
	tests := []struct {
		width int
		want  string
	}{
		{80, "one two three four five six"},
		{34, "one two three four five six"}, // exactly
		{33, "one two three four five…"},
		{5, "one two three four…"}, // some words are left
	}
	for _, tt := range tests {
		rows := [][]string{{"name", "one two three four five six"}}
		if shortenLast(header, rows, tt.width); rows[0][1] != tt.want {
			t.Errorf("shortenLast(%d) = %q, want %q", tt.width, rows[0][1], tt.want)
		}
	}
}

func TestShortImage(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0123456789", 7)
	tests := map[string]string{
		"mcp/fetch":                         "mcp/fetch",
		"registry.example.com:5000/fetch:1": "registry.example.com:5000/fetch:1",
		"docker.io/mcp/fetch@" + digest:     "docker.io/mcp/fetch@sha256:012345678901",
		digest:                              "sha256:012345678901",
		"sha256:0123":                       "sha256:0123",
	}
	for image, want := range tests {
		if got := shortImage(image); got != want {
			t.Errorf("shortImage(%q) = %q, want %q", image, got, want)
		}
	}
}

func TestWriteTable(t *testing.T) {
	var b strings.Builder
	err := writeTable(&b, []string{"NAME", "TEXT"}, [][]string{{"a", "one"}, {"longer", "\x1b[31mred"}, {"empty", ""}})
	want := "NAME     TEXT\na        one\nlonger   \uFFFD[31mred\nempty\n"
	if diff := cmp.Diff(want, b.String()); err != nil || diff != "" {
		t.Errorf("writeTable: %v, mismatch (-want +got):\n%s", err, diff)
	}
}

func TestPaint(t *testing.T) {
	if got := (paint{}).red("x") + (paint{on: true}).bold(""); got != "x" {
		t.Errorf("paint = %q, want no escapes", got)
	}
	if got := (paint{on: true}).red("x"); got != "\x1b[31mx\x1b[0m" {
		t.Errorf("red = %q, want it in red", got)
	}
	if got := paintFor(&strings.Builder{}); got.on {
		t.Error("paintFor(no terminal) colours")
	}
}
