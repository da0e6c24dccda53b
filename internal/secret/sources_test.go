package secret_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/secret"
)

// sources writes a .env file unless text is empty.
func sources(t *testing.T, env map[string]string, text string) secret.Sources {
	t.Helper()
	dir := t.TempDir()
	if text != "" {
		if err := os.WriteFile(filepath.Join(dir, ".env"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return secret.Sources{
		Env: func(name string) (string, bool) {
			value, ok := env[name]
			return value, ok
		},
		Dir: dir,
	}
}

func TestLookup(t *testing.T) {
	tests := []struct {
		name   string
		env    map[string]string
		file   string
		want   string
		source string
	}{
		{"environment", map[string]string{"A": "e"}, "", "e", secret.Environment},
		{"environment first", map[string]string{"A": "e"}, "A=f", "e", secret.Environment},
		{"file", nil, "A=f", "f", ".env"},
		{"set to nothing", map[string]string{"A": ""}, "A=f", "f", ".env"},
		{"last wins", nil, "A=1\nA=2\n", "2", ".env"},
		{"comment", nil, "# A=1\nA=f # g\n", "f", ".env"},
		{"hash in value", nil, "A=f#g\n", "f#g", ".env"},
		{"export", nil, "export A=f\n", "f", ".env"},
		{"yaml", nil, "A: f\n", "f", ".env"},
		{"spaces", nil, " A = f g \n", "f g", ".env"},
		{"single quotes", nil, "A='f # $x \"g\"'\n", `f # $x "g"`, ".env"},
		{"double quotes", nil, `A="f\n'g' # \"h\""`, "f\n'g' # \"h\"", ".env"},
		{"several lines", nil, "A=\"-----BEGIN\nx y\n-----END\"\nB=1\n", "-----BEGIN\nx y\n-----END", ".env"},
		{"mark and carriage returns", nil, "\ufeffA=f\r\nB=g\r\n", "f", ".env"},
		{"expanded from above", nil, "B=b\nA=a${B}c\n", "abc", ".env"},
		{"expanded from the environment", map[string]string{"B": "e"}, "B=b\nA=$B\n", "e", ".env"},
		{"default", nil, "A=${B:-b}${C-c}\n", "bc", ".env"},
		{"dollar", nil, "A=pa$$word\n", "pa$word", ".env"},
		{"dollar before a digit", nil, "A=pa$1word\n", "pa$1word", ".env"},
		{"inherited name", map[string]string{"B": "e"}, "B\nA=$B", "e", ".env"},
		{"not set inherited name", nil, "B\nA=f", "f", ".env"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := sources(t, tt.env, tt.file)
			value, source, err := s.Lookup(t.Context(), secret.Ref{Name: "a", Env: "A"})
			if source == filepath.Join(s.Dir, ".env") {
				source = ".env"
			}
			if err != nil || value.Reveal() != tt.want || source != tt.source {
				t.Errorf("Lookup = %q, %q, %v, want %q, %q", value.Reveal(), source, err, tt.want, tt.source)
			}
		})
	}
}

func TestLookupBadFile(t *testing.T) {
	const syntax = ": no variable: want NAME=VALUE, quotes and ${…} closed"
	const unset = ": the value names a variable that is not set; a dollar sign is written $$, or in single quotes"
	tests := []struct {
		name string
		file string
		want string
	}{
		{"words", "B=1\nthe canary sings\n", ".env:2" + syntax},
		{"bad name", "B=1\n\n# c\ncan/ary=1\nC=2", ".env:4" + syntax},
		{"open quote", "B=1\nA=\"canary\nC=1\nD=2\n", ".env:2" + syntax},
		{"open quote after several lines", "B=\"1\n2\n3\"\nA='canary\nC=1\n", ".env:4" + syntax},
		{"open brace", "B=1\nA=${canary\nC=2", ".env:2" + syntax},
		{"unset", "B=1\nA=pa$canary\n", ".env:2" + unset},
		{"unset in braces", "B=1\nA=\"pa${canary}\"\n", ".env:2" + unset},
		{"unset, default elsewhere", "A=${canary:-1}$canary", ".env:1" + unset},
		{"demanded", "A=${B:?canary}", ".env:1" + syntax},
		{"long", strings.Repeat("# canary\n", 10000), ".env: over 64 KiB"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := sources(t, nil, tt.file)
			_, _, err := s.Lookup(t.Context(), secret.Ref{Name: "a", Env: "A"})
			var bad *secret.FileError
			if !errors.As(err, &bad) {
				t.Fatalf("Lookup = %v, want a FileError", err)
			}
			if got := strings.TrimPrefix(err.Error(), s.Dir+string(filepath.Separator)); got != tt.want {
				t.Errorf("Lookup = %q, want %q", got, tt.want)
			}
			if strings.Contains(err.Error()+bad.Hint(), "canary") {
				t.Errorf("error quotes the file: %v", err)
			}
		})
	}
}

func TestLookupUnreadable(t *testing.T) {
	s := sources(t, map[string]string{"A": "e"}, "")
	if err := os.Mkdir(filepath.Join(s.Dir, ".env"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Lookup(t.Context(), secret.Ref{Name: "a", Env: "A"}); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("Lookup with a folder .env = %v, want an error", err)
	}
}

func TestResolve(t *testing.T) {
	s := sources(t, map[string]string{"A": "1"}, "B=2")
	needs := []secret.Need{
		{Ref: secret.Ref{Name: "b", Env: "B"}, Required: true},
		{Ref: secret.Ref{Name: "none", Env: "NONE"}},
		{Ref: secret.Ref{Name: "a", Env: "A"}},
	}
	found, err := s.Resolve(t.Context(), needs)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range found {
		got = append(got, f.Name+"="+f.Value.Reveal()+" from "+filepath.Base(f.Source))
	}
	if diff := cmp.Diff([]string{"b=2 from .env", "a=1 from environment"}, got); diff != "" {
		t.Errorf("Resolve differs (-want +got):\n%s", diff)
	}
}

func TestResolveMissing(t *testing.T) {
	one := secret.Need{Ref: secret.Ref{Name: "pg.url", Env: "PG_URL"}, Required: true, Instructions: "postgresql://user@host"}
	two := secret.Need{Ref: secret.Ref{Name: "gh.token", Env: "GH_TOKEN"}, Required: true}
	there := secret.Need{Ref: secret.Ref{Name: "a", Env: "A"}, Required: true}
	tests := []struct {
		needs []secret.Need
		file  bool
		want  string
		hint  string
	}{
		{
			[]secret.Need{there, one},
			true, `secret "pg.url" is not set`,
			"set PG_URL in the environment or in DIR/.env: postgresql://user@host",
		},
		{
			[]secret.Need{one, there, two},
			false, `secrets "pg.url", "gh.token" are not set`,
			"set PG_URL in the environment: postgresql://user@host\nset GH_TOKEN in the environment",
		},
	}
	for _, tt := range tests {
		s := sources(t, map[string]string{"A": "1"}, "")
		dir := s.Dir
		if !tt.file {
			s.Dir = ""
		}
		_, err := s.Resolve(t.Context(), tt.needs)
		var missing *secret.MissingError
		if !errors.As(err, &missing) {
			t.Fatalf("Resolve = %v, want a MissingError", err)
		}
		hint := strings.ReplaceAll(filepath.ToSlash(missing.Hint()), filepath.ToSlash(dir), "DIR")
		if err.Error() != tt.want || hint != tt.hint {
			t.Errorf("Resolve = %q, hint %q, want %q, hint %q", err, hint, tt.want, tt.hint)
		}
	}
}

func FuzzLookup(f *testing.F) {
	for _, text := range []string{"A=1", "A='x\ny'\n", "export A=\"$B${C:-d}\"", "A=$$x # y", "A", "A=${B", "\ufeffA: 1\r\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s := sources(t, nil, text)
		value, source, err := s.Lookup(t.Context(), secret.Ref{Name: "a", Env: "A"})
		if err == nil && (!value.Set() || source == "") {
			t.Errorf("Lookup in %q = %q, %q, want a value or an error", text, value.Reveal(), source)
		}
		var missing *secret.MissingError
		var bad *secret.FileError
		if err != nil && !errors.As(err, &missing) && !errors.As(err, &bad) {
			t.Errorf("Lookup in %q = %v, want a MissingError or a FileError", text, err)
		}
	})
}
