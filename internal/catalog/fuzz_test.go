package catalog_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	builtin "github.com/dockgate/dockgate/catalog"
	"github.com/dockgate/dockgate/internal/catalog"
)

func FuzzParse(f *testing.F) {
	mistakes, err := os.ReadFile("testdata/mistakes.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{
		string(mistakes),
		string(builtin.Servers()),
		"version: 1\nservers: {x: {image: y, config: {type: object, properties: {a: {type: string}}}, command: ['{{config.a}}']}}",
		"version: 1\nservers: {x: &x {image: y, config: {a: *x}}}",
		"version: 1\nservers:\n  ? [a]\n  : b",
		"version: 1\n---\n",
		"version: !!binary aGk=\nservers: {x: {image: !!float y}}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		file, err := parse(text)
		var problems catalog.Problems
		switch {
		case errors.As(err, &problems):
			for _, p := range problems {
				if p.Text == "" || p.Line < 0 || p.Line > strings.Count(text, "\n")+strings.Count(text, "\r")+2 {
					t.Errorf("Parse(%q) reports %+v", text, p)
				}
			}
			if len(problems) == 0 {
				t.Errorf("Parse(%q) = no problem and an error", text)
			}
		case err != nil:
			t.Errorf("Parse(%q) = %v, want Problems", text, err)
		}
		for _, s := range file.Servers {
			if err := s.Validate(); err != nil {
				t.Errorf("Parse(%q) accepts %+v, and Validate does not: %v", text, s, err)
			}
			_ = s.CheckSettings(map[string]any{"a": "b"}) // must end
		}
	})
}
