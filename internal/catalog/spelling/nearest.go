// Package spelling finds the known names that are most like an unknown one, so
// that an error can say what was probably meant.
package spelling

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Nearest returns the candidates that are most like name, at most three, the
// likeliest first. The first is there however far off it is; others only if
// less than about half of the name would have to change.
func Nearest(name string, candidates []string) []string { return nearest(name, candidates, 3) }

// nearest returns the candidates that are most like name, at most limit of
// them and the likeliest first. A candidate that holds the name, or is held by
// it, counts as one edit away.
func nearest(name string, candidates []string, limit int) []string {
	type scored struct {
		name     string
		distance int
		edits    int
	}
	wanted := strings.ToLower(name)
	all := make([]scored, 0, len(candidates))
	for _, candidate := range candidates {
		lower := strings.ToLower(candidate)
		changes := edits(wanted, lower)
		distance := changes
		if wanted != "" && (strings.Contains(lower, wanted) || strings.Contains(wanted, lower)) {
			distance = min(distance, 1)
		}
		all = append(all, scored{candidate, distance, changes})
	}
	slices.SortFunc(all, func(a, b scored) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.edits, b.edits), cmp.Compare(a.name, b.name))
	})
	names := make([]string, 0, limit)
	for i, s := range all[:min(limit, len(all))] {
		if i == 0 || s.distance <= (len(wanted)+1)/2 {
			names = append(names, s.name)
		}
	}
	return names
}

// Suggestion returns "; did you mean …?" if a candidate is at most two edits
// away from name, else nothing.
func Suggestion(name string, candidates []string) string {
	if meant, ok := Meant(name, candidates); ok {
		return fmt.Sprintf("; did you mean %q?", meant)
	}
	return ""
}

// Meant returns the candidate that is most like name, if it is at most two
// edits away.
func Meant(name string, candidates []string) (string, bool) {
	found := nearest(name, candidates, 1)
	if len(found) == 0 || edits(strings.ToLower(name), strings.ToLower(found[0])) > 2 {
		return "", false
	}
	return found[0], true
}

// edits is the Levenshtein distance in bytes: how many have to be inserted,
// deleted or replaced. Long names are cut, so that a name from outside cannot
// cost more than a moment.
func edits(a, b string) int {
	const longest = 128
	a, b = a[:min(len(a), longest)], b[:min(len(b), longest)]
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			above := row[j+1]
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			row[j+1] = min(cost, above+1, row[j]+1)
			diagonal = above
		}
	}
	return row[len(b)]
}
