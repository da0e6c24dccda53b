package catalog_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/catalog/setting"
)

const settingsEntry = `
image: y
config:
  type: object
  required: [url]
  properties:
    url: {type: string, description: Where the database is}
    port: {type: integer, minimum: 1, maximum: 65535}
    ratio: {type: number}
    debug: {type: boolean}
    paths: {type: array, items: {type: string}}
    ports: {type: array, items: {type: integer}}
    limit: {type: [integer, string]}
    any: {}
    user:
      type: object
      required: [name]
      properties: {name: {type: string}, age: {type: integer}, tags: {type: array}}
    labels: {type: object, additionalProperties: {type: integer}}
    free: {type: object}
  dependentRequired: {debug: [port]}
`

func TestCheckSettings(t *testing.T) {
	server := parseServer(t, settingsEntry)
	tests := []struct{ settings, want string }{
		{`{"url": "a"}`, ""},
		{`{"url": "a", "port": 5432, "paths": ["/a"], "user": {"name": "b", "tags": [1]}, "labels": {"x": 1}, "free": {"y": {"z": 1}}}`, ""},
		{`{}`, `server "x": setting "url" is required: Where the database is`},
		{`{"url": 5}`, `server "x": setting "url" is invalid: type: 5 has type "integer", want "string"`},
		{`{"url": "a", "port": 0}`, `server "x": setting "port" is invalid: minimum: 0/1 is less than 1.000000`},
		{`{"url": "a", "prot": 1}`, `server "x": setting "prot" is unknown; did you mean "port"?`},
		{`{"url": "a", "user": {"name": "b", "nme": 1}}`, `server "x": setting "user.nme" is unknown; did you mean "name"?`},
		{`{"url": "a", "user": {}}`, `server "x": setting "user" is invalid: required: missing properties: ["name"]`},
		{`{"url": "a", "labels": {"x": "y"}}`, `server "x": setting "labels" is invalid: type: y has type "string", want "integer"`},
		{`{"url": "a", "debug": true}`, `server "x": settings do not fit together: dependentRequired["debug"]: missing properties ["port"]`},
		{`{"port": "a", "what": 1}`, `server "x": setting "url" is required: Where the database is; setting "what" is unknown; setting "port" is invalid: type: a has type "string", want "integer"`},
	}
	for _, tt := range tests {
		var settings map[string]any
		if err := json.Unmarshal([]byte(tt.settings), &settings); err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := server.CheckSettings(settings); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("CheckSettings(%s) = %s, want %s", tt.settings, got, tt.want)
		}
	}
}

func TestCheckSettingsHint(t *testing.T) {
	var failure *catalog.SettingsError
	if err := parseServer(t, settingsEntry).CheckSettings(nil); !errors.As(err, &failure) {
		t.Fatalf("CheckSettings(nil) = %v, want a SettingsError", err)
	}
	if got, want := failure.Hint(), "dockgate add x --set url=value"; got != want {
		t.Errorf("Hint() = %q, want %q", got, want)
	}
	plain := parseServer(t, "image: y")
	if err := plain.CheckSettings(nil); err != nil {
		t.Errorf("CheckSettings(nil) of an entry without settings = %v, want nil", err)
	}
	if err := plain.CheckSettings(map[string]any{"a": 1}); err == nil || !strings.Contains(err.Error(), "takes no settings") {
		t.Errorf("CheckSettings(a) of an entry without settings = %v, want that it takes none", err)
	}
	if _, err := setting.Parse(plain.Name, plain.Config, []string{"a=1"}); err == nil || !strings.Contains(err.Error(), "takes no settings") {
		t.Errorf("Parse(a=1) of an entry without settings = %v, want that it takes none", err)
	}
}

// A schema that leads in circles is refused where a settings map could send
// the validation round and round.
func TestCheckSettingsRefusesBrokenSchema(t *testing.T) {
	for _, config := range []string{`{"$ref":"#"}`, `{"properties":{"a":{"$dynamicRef":"#x"}}}`, `{"type":5}`, `{"properties":{"a":null}}`} {
		s := catalog.Server{Name: "x", Image: "y", Config: []byte(config)}
		if err := s.CheckSettings(map[string]any{}); err == nil || !strings.Contains(err.Error(), "config") {
			t.Errorf("CheckSettings with the config %s = %v, want the config refused", config, err)
		}
	}
}

func TestParseSettings(t *testing.T) {
	server := parseServer(t, settingsEntry)
	tests := []struct {
		in   string // assignments, with spaces between them
		want string // JSON, or an error
	}{
		{"", `{}`},
		{"url=postgresql://h/db?a=b", `{"url":"postgresql://h/db?a=b"}`},
		{"url=5 port=5", `{"port":5,"url":"5"}`},
		{"url=", `{"url":""}`},
		{"ratio=0.5 debug=true", `{"debug":true,"ratio":0.5}`},
		{"paths=/a,/b", `{"paths":["/a","/b"]}`},
		{"paths=/a paths=/b,/c", `{"paths":["/a","/b","/c"]}`},
		{"paths=", `{"paths":[]}`},
		{`paths=["/a,b"]`, `{"paths":["/a,b"]}`},
		{"ports=1,2", `{"ports":[1,2]}`},
		{"limit=5", `{"limit":5}`},
		{"limit=none", `{"limit":"none"}`},
		{"any=5", `{"any":"5"}`},
		{"user.name=a user.age=3 user.tags=b,c", `{"user":{"age":3,"name":"a","tags":["b","c"]}}`},
		{`user={"name":"a"} user.age=3`, `{"user":{"age":3,"name":"a"}}`},
		{"labels.x=1 labels.y=2", `{"labels":{"x":1,"y":2}}`},
		{"free.a.b=c", `{"free":{"a":{"b":"c"}}}`},
		{"free.a=b", `{"free":{"a":"b"}}`},

		{"url", `error: server "x": "url" is not of the form key=value`},
		{"=5", `error: server "x": "=5" is not of the form key=value`},
		{"ulr=a", `error: server "x": setting "ulr" is unknown; did you mean "url"?`},
		{"user.nam=a", `error: server "x": setting "user.nam" is unknown; did you mean "name"?`},
		{"url.a=b", `error: server "x": setting "url.a" is unknown`},
		{"labels..=1", `error: server "x": setting "labels.." is unknown`},
		{"port=5.5", `error: server "x": setting "port" is "5.5", want a whole number`},
		{"ratio=NaN", `error: server "x": setting "ratio" is "NaN", want a number`},
		{"debug=yes", `error: server "x": setting "debug" is "yes", want true or false`},
		{"ports=1,b", `error: server "x": setting "ports" has an element that is "b", want a whole number`},
		{"user=[]", `error: server "x": setting "user" is "[]", want a JSON object`},
		{`user={"name":1}{}`, `error: server "x": setting "user" is "{\"name\":1}{}", want a JSON object`},
		{"url=a url=b", `error: server "x": setting "url" is set twice`},
		{"user.name=a user.name=b port=x", `error: server "x": setting "user.name" is set twice; setting "port" is "x", want a whole number`},
	}
	for _, tt := range tests {
		var got string
		settings, err := setting.Parse(server.Name, server.Config, strings.Fields(tt.in))
		if err != nil {
			got = "error: " + err.Error()
		} else if encoded, err := json.Marshal(settings); err == nil {
			got = string(encoded)
		}
		if got != tt.want {
			t.Errorf("Parse(%s) = %s, want %s", tt.in, got, tt.want)
		}
	}
}

func FuzzParseSettings(f *testing.F) {
	for _, seed := range []string{"url=a\nport=5", "paths=/a,/b\npaths=[]", "user.name=a\nuser={}", "labels.x=1", "free.a=b", "ratio=1e999", "limit=9\nany={}"} {
		f.Add(seed)
	}
	file, err := parse("version: 1\nservers:\n  x:\n    " + strings.ReplaceAll(strings.TrimSpace(settingsEntry), "\n", "\n    "))
	if err != nil {
		f.Fatal(err)
	}
	server := file.Servers[0]
	f.Fuzz(func(t *testing.T, text string) {
		settings, err := setting.Parse(server.Name, server.Config, strings.Split(text, "\n"))
		if err != nil {
			return
		}
		if _, err := json.Marshal(settings); err != nil {
			t.Errorf("Parse(%q) = %v, which does not encode: %v", text, settings, err)
		}
		// What was read has only names the schema knows.
		if err := server.CheckSettings(settings); err != nil && strings.Contains(err.Error(), "is unknown") {
			// An object given as JSON may hold anything; it is judged here.
			if !strings.Contains(text, "{") {
				t.Errorf("Parse(%q) = %v, and CheckSettings then says %v", text, settings, err)
			}
		}
	})
}

func TestServerJSON(t *testing.T) {
	server := parseServer(t, settingsEntry)
	encoded, err := json.Marshal(server)
	if err != nil {
		t.Fatal(err)
	}
	var back catalog.Server
	if err := json.Unmarshal(encoded, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(server, back); diff != "" {
		t.Errorf("through JSON (-want +got):\n%s", diff)
	}
}
