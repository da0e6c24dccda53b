package policy_test

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v3"

	"github.com/dockgate/dockgate/internal/policy"
)

// TestSchema holds the schema and the types together: each key of a Config is
// in it and the other way round, and it takes what is read and refuses what is
// not.
func TestSchema(t *testing.T) {
	whole, err := policy.Schema()
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(encoded, &schema); err != nil {
		t.Fatal(err)
	}
	compare(t, "", &schema, reflect.TypeFor[policy.Config]())
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range configSeeds(t) {
		path := filepath.Join(t.TempDir(), "config.yaml")
		write(t, path, text)
		_, err := policy.LoadConfig(path)
		var value any
		if yaml.Unmarshal([]byte(text), &value) != nil || value == nil {
			continue
		}
		asJSON, failed := json.Marshal(value)
		if failed != nil {
			continue
		}
		if failed := json.Unmarshal(asJSON, &value); failed != nil {
			t.Fatal(failed)
		}
		if verdict := resolved.Validate(value); err == nil && verdict != nil {
			t.Errorf("%q is read, and the schema says %v", text, verdict)
		}
	}
	for _, text := range []string{
		`{"aproval": {}}`, `{"approval": {"mode": "x"}}`, `{"quotas": {"max_running": 0}}`, `{"discovery": {"sources": [{"type": "x"}]}}`,
		`{"discovery": {"cache": {"ttl": 0}}}`, `{"expose": ["all"]}`, `{"timeouts": {"call": 30}}`, `{"limits": {"disk": "1GB"}}`, `{"http": {"listen": "x"}}`,
	} {
		var value any
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			t.Fatal(err)
		}
		if resolved.Validate(value) == nil {
			t.Errorf("the schema takes %s", text)
		}
	}
}

// compare holds the properties of a schema to the fields of a struct.
func compare(t *testing.T, path string, schema *jsonschema.Schema, of reflect.Type) {
	t.Helper()
	var want, got []string
	for field := range of.Fields() {
		name := field.Tag.Get("yaml")
		if name == "-" || name == "" {
			continue
		}
		want = append(want, name)
		inner := schema.Properties[name]
		ownReader := reflect.PointerTo(field.Type).Implements(reflect.TypeFor[yaml.Unmarshaler]()) || field.Type == reflect.TypeFor[yaml.Node]()
		if inner != nil && field.Type.Kind() == reflect.Struct && !ownReader {
			compare(t, path+name+".", inner, field.Type)
		}
	}
	for name := range schema.Properties {
		got = append(got, name)
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("properties of the schema at %q (-fields +schema):\n%s", path, diff)
	}
}
