package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// An empty cell at the end of a row moves no column of the rows below it, and
// leaves no spaces behind.
func TestWriteTableWithGaps(t *testing.T) {
	var b strings.Builder
	rows := [][]string{
		{"a", "approved", "sha256:1"},
		{"b", "", ""},
		{"longer", "x", "sha256:2"},
	}
	if err := writeTable(&b, []string{"NAME", "STATE", "IMAGE"}, rows); err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{
		"NAME     STATE      IMAGE",
		"a        approved   sha256:1",
		"b",
		"longer   x          sha256:2",
		"",
	}, "\n")
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("writeTable() (-want +got):\n%s", diff)
	}
}
