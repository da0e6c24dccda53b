package doctor_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/access"
	"github.com/dockgate/dockgate/internal/access/accesstest"
	"github.com/dockgate/dockgate/internal/daemon/daemontest"
	"github.com/dockgate/dockgate/internal/doctor"
	"github.com/dockgate/dockgate/internal/policy"
)

func TestExamineCallers(t *testing.T) {
	o := daemontest.Options(t, noServers)
	examine := func(text string) (got []string) {
		t.Helper()
		config, err := policy.ParseConfig("config.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		o.Config.Admission, o.Config.HTTP = config.Admission, config.HTTP
		for _, f := range doctor.Examine(t.Context(), o) {
			if f.Subject == "access" {
				got = append(got, string(f.Health)+": "+f.Text)
				if f.Health != doctor.Good && f.Hint == "" {
					t.Errorf("%s has no hint", f.Text)
				}
			}
		}
		return got
	}
	if got := examine(""); got != nil {
		t.Errorf("a gateway without callers: %q, want nothing", got)
	}
	d := daemontest.Open(t, o)
	for name, role := range map[string]string{"good": "", "old": ""} {
		expires := time.Time{}
		if name == "old" {
			expires = time.Now()
		}
		if _, _, err := d.NewToken(t.Context(), name, role, expires); err != nil {
			t.Fatal(err)
		}
	}
	var unknown *access.RoleError
	if _, _, err := d.NewToken(t.Context(), "bad", "reader", time.Time{}); !errors.As(err, &unknown) {
		t.Errorf("NewToken with a role that is not configured = %v, want a RoleError", err)
	}
	there := accesstest.NewIssuer(t)
	issuer := "http: {url: 'https://a.example/mcp'}\naccess:\n  issuers: [{name: a, url: '" + there.URL + "'}]\n"
	want := []string{
		"good: 2 tokens, 1 issuer of others, 0 roles of the configuration",
		"poor: tokens that have expired, or whose role is not configured: old",
		"poor: whoever has a token of " + there.URL + " for this gateway may use everything that is approved",
	}
	if diff := cmp.Diff(want, examine(issuer)); diff != "" {
		t.Errorf("examined (-want +got):\n%s", diff)
	}
	want = []string{
		"good: 2 tokens, 1 issuer of others, 1 role of the configuration",
		"poor: tokens that have expired, or whose role is not configured: good, old",
	}
	if diff := cmp.Diff(want, examine(issuer+"roles: {reader: {servers: [fetch]}}\n")); diff != "" {
		t.Errorf("examined (-want +got):\n%s", diff)
	}
	there.Break()
	if got := examine(issuer); len(got) != 4 || !strings.HasPrefix(got[2], "poor: keys of issuer "+there.URL+": ") {
		t.Errorf("an issuer that does not answer: %q, want it named", got)
	}
}
