package document

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A Problem is one mistake in a catalog.
type Problem struct {
	// File is the catalog's path, or its short name.
	File string
	// Line is 1-based; 0 where it is not known.
	Line int
	// Field is the path of the mistake, such as "servers.git.mounts[0].target".
	Field string
	Text  string
}

// String returns "file:line: field: text".
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d", p.Line)
	}
	b.WriteString(": ")
	if p.Field != "" {
		b.WriteString(p.Field + ": ")
	}
	b.WriteString(p.Text)
	return b.String()
}

// Problems is the error of a catalog with mistakes: all of them, in the order
// of their lines.
type Problems []Problem

// Error returns one line for each problem.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, problem := range p {
		lines[i] = problem.String()
	}
	return strings.Join(lines, "\n")
}

// Hint says how to go on.
func (p Problems) Hint() string {
	return "nothing was loaded; correct these lines and check them with: dockgate catalog validate FILE"
}

// Sort puts the problems into the order of their lines.
func (p Problems) Sort() {
	slices.SortStableFunc(p, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Field, b.Field), cmp.Compare(a.Text, b.Text))
	})
}
