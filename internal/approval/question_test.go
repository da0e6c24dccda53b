package approval_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/sandbox"
)

func TestLines(t *testing.T) {
	before := sandbox.Grant{Server: "git", Source: catalog.BuiltIn, Transport: "stdio", Image: "mcp/git", Command: []string{"serve"}}
	after := before
	after.Command = []string{"serve", "--all"}
	tests := []struct {
		name     string
		question approval.Question
		want     []string
		without  []string
	}{
		{
			name: "first",
			question: approval.Question{
				Server: "git", Kind: approval.KindFirst, Grant: before,
				Details: approval.Details{Title: "Git", Description: "Reads\nrepositories", Origin: catalog.Origin{Catalog: "built-in"}},
			},
			want: []string{
				`server "git" wants to start`, "title:     Git", `about:     Reads\u000arepositories`, "catalog:   built-in",
				"source:    built-in, transport stdio", "command:   serve",
			},
			without: []string{"what changed:"},
		},
		{
			name:     "changed",
			question: approval.Question{Server: "git", Kind: approval.KindChanged, Grant: after, Previous: &before},
			want: []string{
				`server "git" changed since it was approved`, "what changed:", "- command:   serve", "+ command:   serve --all",
				"what it would be:", "command:   serve --all",
			},
		},
		{
			name:     "expired",
			question: approval.Question{Server: "git", Kind: approval.KindExpired, Grant: before},
			want:     []string{`the approval of server "git" expired`, "command:   serve"},
		},
		{
			name: "tools",
			question: approval.Question{Server: "git", Kind: approval.KindTools, Grant: before, Tools: []approval.ToolChange{
				{Name: "log", Kind: approval.ToolChanged, Before: []byte(`{"name":"log"}`), After: []byte(`{"name":"log","a":1}`)},
				{Name: "push", Kind: approval.ToolAdded, After: []byte(`{"name":"push"}`)},
			}},
			want: []string{
				`server "git" offers new tools: 1, changed tools: 1`,
				`- tool log: {"name":"log"}`, `+ tool log: {"name":"log","a":1}`, `+ tool push: {"name":"push"}`,
			},
			without: []string{"command:   serve"},
		},
		{
			name: "nothing a terminal obeys",
			question: approval.Question{Server: "git", Kind: approval.KindTools, Tools: []approval.ToolChange{
				{Name: "x\x1b[2K", Kind: approval.ToolAdded, After: []byte("{\"a\":\"\u202egnp\u200b\x9b\r\"}")},
			}},
			want: []string{"+ tool x\\u001b[2K: {\"a\":\"\\u202egnp\\u200b\ufffd\\u000d\"}"},
		},
	}
	for _, tt := range tests {
		got := tt.question.Lines()
		var missing []string
		at := 0
		for _, line := range tt.want {
			for at < len(got) && got[at] != line {
				at++
			}
			if at == len(got) {
				missing = append(missing, line)
				at = 0
			}
		}
		if missing != nil {
			t.Errorf("%s: Lines lacks, in this order:\n%s\ngot:\n%s", tt.name, strings.Join(missing, "\n"), strings.Join(got, "\n"))
		}
		for _, line := range tt.without {
			if strings.Contains(strings.Join(got, "\n"), line) {
				t.Errorf("%s: Lines has %q", tt.name, line)
			}
		}
	}
}

func TestRefusalTexts(t *testing.T) {
	tests := []struct {
		err  error
		want string
		hint string
	}{
		{
			&approval.GoneError{ID: "1a2b3c4d", Server: "github", Progress: approval.ProgressApproved},
			`question 1a2b3c4d about "github" was approved meanwhile`,
			"to take an approval back, run dockgate revoke github",
		},
		{
			&approval.GoneError{ID: "1a2b3c4d", Server: "github"},
			`question 1a2b3c4d about "github" is not asked any more`,
			"see what is asked now with dockgate approve",
		},
		{
			&approval.LocalError{Servers: []string{"a", "b"}},
			"approvals of local images cannot be carried to another machine: a, b",
			"push the image to a registry and approve it by its digest, or export the other servers by name",
		},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, tt.err.Error()); diff != "" {
			t.Errorf("%T (-want +got):\n%s", tt.err, diff)
		}
		hinted, ok := tt.err.(interface{ Hint() string })
		if !ok || hinted.Hint() != tt.hint {
			t.Errorf("%T has no hint %q", tt.err, tt.hint)
		}
	}
}
