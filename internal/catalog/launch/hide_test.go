package launch_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/catalog/launch"
)

// An entry that is copied brings no secret along, nor do its helpers; what asks
// for one already stays as it is.
func TestCopied(t *testing.T) {
	const value = "hunter2"
	server := catalog.Server{
		Name: "a", Image: "b", Origin: catalog.Origin{Catalog: "compose.yaml"}, Isolation: catalog.Shared,
		Network: catalog.Network{Mode: catalog.NetworkNone},
		Config:  json.RawMessage(`{"type":"object","properties":{"token":{"type":"string"}},"additionalProperties":false}`),
		Command: []string{"--token", "{{config.token}}", "--token=" + value, "--level", "info"},
		Env: []catalog.Variable{
			{Name: "API_KEY", Value: value},
			{Name: "URL", Value: "postgres://u:" + value + "@h/d"},
			{Name: "SENT", Value: "Bearer ${TOKEN}"},
			{Name: "LEVEL", Value: "info"},
			{Name: "USE_TOKEN", Value: "true"},
		},
		Secrets: []catalog.Secret{{Name: "a.token", Env: "TOKEN", Required: true}},
		Helpers: []catalog.Helper{{
			Name: "db", Image: "c", Command: []string{"--password", value}, Env: []catalog.Variable{{Name: "POSTGRES_PASSWORD", Value: value}},
			Ready: catalog.ReadyHealthy, Health: &catalog.Health{Test: []string{"ping", "--password", value}},
		}},
	}
	before, err := json.Marshal(server)
	if err != nil {
		t.Fatal(err)
	}
	got := launch.Copied(server)
	written, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(written), value) {
		t.Errorf("Copied() = %s, want no %s in it", written, value)
	}
	if err := got.Validate(); err != nil {
		t.Errorf("Copied() is refused: %v", err)
	}
	if after, _ := json.Marshal(server); string(after) != string(before) {
		t.Errorf("Copied() has changed what it was given: %s", after)
	}
	if diff := cmp.Diff([]string{"--token", "{{config.token}}", "--token={{config.token-2}}", "--level", "info"}, got.Command); diff != "" {
		t.Errorf("command (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]catalog.Variable{{Name: "SENT", Value: "Bearer ${TOKEN}"}, {Name: "LEVEL", Value: "info"}, {Name: "USE_TOKEN", Value: "true"}}, got.Env); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
	}
	var asked []string
	for _, s := range append(got.Secrets, got.Helpers[0].Secrets...) {
		asked = append(asked, s.Name+" "+s.Env)
	}
	if diff := cmp.Diff([]string{"a.token TOKEN", "a.api_key API_KEY", "a.url URL", "a.db.postgres_password POSTGRES_PASSWORD"}, asked); diff != "" {
		t.Errorf("secrets (-want +got):\n%s", diff)
	}
	if again := launch.Copied(got); !cmp.Equal(again, got) {
		t.Errorf("Copied() again (-first +second):\n%s", cmp.Diff(got, again))
	}
}
