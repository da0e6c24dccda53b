package access_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/access"
	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/principal"
)

func names(t *testing.T, patterns ...string) access.Names {
	t.Helper()
	compiled, err := access.CompileNames(patterns)
	if err != nil {
		t.Fatalf("CompileNames(%q) = %v", patterns, err)
	}
	return compiled
}

func TestNames(t *testing.T) {
	tests := []struct {
		patterns []string
		name     string
		want     bool
	}{
		{nil, "git", false},
		{[]string{"git"}, "git", true},
		{[]string{"git"}, "github", false},
		{[]string{"git*"}, "github", true},
		{[]string{"git*", "!github"}, "github", false},
		{[]string{"git*", "!github"}, "gitlab", true},
		{[]string{"!github"}, "fetch", true},
		{[]string{"fetch", "git*"}, "gitlab", true},
		{[]string{"*servers.yaml"}, "/home/ann/servers.yaml", true},
		{[]string{"*"}, "anything", true},
	}
	for _, tt := range tests {
		if got := names(t, tt.patterns...).Has(tt.name); got != tt.want {
			t.Errorf("CompileNames(%q).Has(%q) = %v, want %v", tt.patterns, tt.name, got, tt.want)
		}
	}
	if (access.Names{}).Has("git") || !access.AnyName().Has("git") {
		t.Error("the zero Names has a name, or AnyName has not")
	}
	for _, pattern := range []string{"[a", "/(/", "/home/*/servers.yaml", ""} {
		if _, err := access.CompileNames([]string{"*", pattern}); err == nil || !strings.Contains(err.Error(), pattern) {
			t.Errorf("CompileNames(%q) = %v, want an error that names it", pattern, err)
		}
	}
}

func TestRoleOf(t *testing.T) {
	some := map[string]*access.Role{"reader": {Name: "reader"}, "writer": {Name: "writer"}}
	caller := func(role string) principal.Principal { return principal.Principal{ID: "ann", Role: role} }
	local := func(role string) principal.Principal { return principal.Principal{ID: "local", Role: role} }
	tests := []struct {
		roles access.Roles
		who   principal.Principal
		want  string // empty is an error
	}{
		{access.Roles{}, caller(""), "owner"},
		{access.Roles{}, caller("owner"), "owner"},
		{access.Roles{}, caller("reader"), ""},
		{access.Roles{}, principal.Local, "owner"},
		{access.Roles{Each: some}, caller(""), ""},
		{access.Roles{Each: some}, caller("reader"), "reader"},
		{access.Roles{Each: some}, caller("owner"), "owner"},
		{access.Roles{Each: some}, caller("wroter"), ""},
		{access.Roles{Each: some}, principal.Local, "owner"},
		{access.Roles{Each: some}, local("reader"), "reader"},
		{access.Roles{Each: some, Default: "writer"}, caller(""), "writer"},
		{access.Roles{Each: some, Default: "writer"}, caller("reader"), "reader"},
		{access.Roles{Each: some, Default: "writer"}, principal.Local, "owner"},
		{access.Roles{Each: some, Default: "writer", Local: "reader"}, principal.Local, "reader"},
	}
	for _, tt := range tests {
		role, err := tt.roles.Of(tt.who)
		var unknown *access.RoleError
		switch {
		case tt.want == "" && (!errors.As(err, &unknown) || unknown.Hint() == "" || unknown.Code() != access.CodeDenied):
			t.Errorf("%+v.Of(%+v) = %v, %v, want a RoleError", tt.roles, tt.who, role, err)
		case tt.want != "" && (err != nil || role.Name != tt.want):
			t.Errorf("%+v.Of(%+v) = %v, %v, want %s", tt.roles, tt.who, role, err, tt.want)
		}
	}
	if got := (access.Roles{Each: some}).Names(); !cmp.Equal(got, []string{"owner", "reader", "writer"}) {
		t.Errorf("Names() = %v", got)
	}
	if err := (access.Roles{Each: some}).Check("reder"); err == nil || err.Error() != `there is no role "reder"; there are: owner, reader, writer` {
		t.Errorf("Check(reder) = %v", err)
	}
}

func TestPermit(t *testing.T) {
	parse := func(name, text string) catalog.File {
		file, err := catalog.Parse(catalog.Origin{Catalog: name, Kind: catalog.User}, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return file
	}
	servers, _ := catalog.Merge(
		parse("built-in", "version: 1\nservers:\n  fetch: {image: a}\n  github: {image: a}\n  gitlab: {image: a}\n"),
		parse("team.yaml", "version: 1\nservers:\n  gitea: {image: a}\n  tracker: {image: a}\n"),
	)
	roles := access.Roles{Each: map[string]*access.Role{
		"git":      {Name: "git", Catalogs: access.AnyName(), Servers: names(t, "git*", "!github"), Place: "config.yaml:3"},
		"built-in": {Name: "built-in", Catalogs: names(t, "built-in"), Servers: access.AnyName()},
		"both":     {Name: "both", Catalogs: names(t, "team*"), Servers: names(t, "git*")},
		"none":     {Name: "none"},
	}}
	tests := map[string][]string{
		"owner": {"fetch", "gitea", "github", "gitlab", "nowhere", "tracker"}, "git": {"gitea", "gitlab"},
		"built-in": {"fetch", "github", "gitlab"}, "both": {"gitea"}, "none": nil, "unknown": nil,
	}
	for role, want := range tests {
		var got []string
		for _, server := range []string{"fetch", "gitea", "github", "gitlab", "nowhere", "tracker"} {
			err := roles.Permit(principal.Principal{ID: "ann", Role: role}, servers, server)
			var denied *access.DeniedError
			if err == nil {
				got = append(got, server)
			} else if errors.As(err, &denied) && (denied.Server != server || denied.Code() != access.CodeDenied || denied.Hint() == "") {
				t.Errorf("Permit(%s) = %+v", server, denied)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("servers of the role %s (-want +got):\n%s", role, diff)
		}
	}
	// Nobody learns from a refusal which servers there are.
	ann := principal.Principal{ID: "ann", Role: "git"}
	there, nowhere := roles.Permit(ann, servers, "github"), roles.Permit(ann, servers, "gitnub")
	if there == nil || nowhere == nil || strings.Replace(there.Error(), "github", "gitnub", 1) != nowhere.Error() {
		t.Errorf("Permit of a server that is there = %v, of one that is not = %v, want no difference", there, nowhere)
	}
}
