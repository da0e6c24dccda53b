package jsonrpc_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/jsonrpc"
)

func raw(s string) json.RawMessage { return json.RawMessage(s) }

func TestParse(t *testing.T) {
	tests := []struct {
		name, line string
		want       jsonrpc.Message
		kind       jsonrpc.Kind
	}{
		{
			"request", `{"jsonrpc":"2.0","id":1,"method":"ping"}`,
			jsonrpc.Message{ID: raw("1"), Method: "ping"},
			jsonrpc.Request,
		},
		{
			"string id", `{"id":"a\u0062","method":"m","jsonrpc":"2.0","params":{ "x" : 1 }}`,
			jsonrpc.Message{ID: raw(`"a\u0062"`), Method: "m", Params: raw(`{ "x" : 1 }`)},
			jsonrpc.Request,
		},
		{
			"notification", "\t{\"jsonrpc\":\"2.0\",\"method\":\"n/\\u0061\"} \r\n",
			jsonrpc.Message{Method: "n/a"},
			jsonrpc.Notification,
		},
		{
			"verbatim result", `{"jsonrpc":"2.0","id":12345678901234567890,"result":{"b":1e400,"a":"<>&` + "\u2028" + `","a":9007199254740993}}`,
			jsonrpc.Message{ID: raw("12345678901234567890"), Result: raw(`{"b":1e400,"a":"<>&` + "\u2028" + `","a":9007199254740993}`)},
			jsonrpc.Response,
		},
		{
			"null result", `{"jsonrpc":"2.0","id":1,"result":null,"error":null}`,
			jsonrpc.Message{ID: raw("1"), Result: raw("null")},
			jsonrpc.Response,
		},
		{
			"no result", `{"jsonrpc":"2.0","id":1}`,
			jsonrpc.Message{ID: raw("1")},
			jsonrpc.Response,
		},
		{
			"error", `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"say \"no\"","data":{"k":[1, 2]},"more":1}}`,
			jsonrpc.Message{ID: raw("1"), Error: &jsonrpc.Error{Code: -32601, Message: `say "no"`, Data: raw(`{"k":[1, 2]}`)}},
			jsonrpc.Response,
		},
		{
			"error without id", `{"jsonrpc":"2.0","error":{"code":-32700,"message":"parse"}}`,
			jsonrpc.Message{ID: raw("null"), Error: &jsonrpc.Error{Code: -32700, Message: "parse"}},
			jsonrpc.Response,
		},
		{
			"error that is text", `{"jsonrpc":"2.0","id":1,"error":"boom"}`,
			jsonrpc.Message{ID: raw("1"), Error: &jsonrpc.Error{Message: "boom"}},
			jsonrpc.Response,
		},
		{
			"error of odd types", `{"jsonrpc":"2.0","id":1,"error":{"code":"-5","message":[1]}}`,
			jsonrpc.Message{ID: raw("1"), Error: &jsonrpc.Error{Code: -5, Message: "[1]"}},
			jsonrpc.Response,
		},
		{
			"both", `{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"x"}}`,
			jsonrpc.Message{ID: raw("1"), Result: raw("{}"), Error: &jsonrpc.Error{Code: 1, Message: "x"}},
			jsonrpc.Response,
		},
		{
			"escaped member name", `{"jsonrpc":"2.0","\u0069d":7,"method":"m"}`,
			jsonrpc.Message{ID: raw("7"), Method: "m"},
			jsonrpc.Request,
		},
		{
			"member names are exact", `{"jsonrpc":"2.0","ID":7,"Method":"x","method":"m"}`,
			jsonrpc.Message{Method: "m"},
			jsonrpc.Notification,
		},
		{
			"byte order mark", "\ufeff" + `{"jsonrpc":"2.0","method":"m"}`,
			jsonrpc.Message{Method: "m"},
			jsonrpc.Notification,
		},
		{
			"invalid UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"a\xff\xfeb\"}",
			jsonrpc.Message{ID: raw("1"), Result: raw("\"a\ufffdb\"")},
			jsonrpc.Response,
		},
		{
			"as deep as allowed", `{"jsonrpc":"2.0","method":"m","params":` + nested(jsonrpc.MaxDepth-1) + `}`,
			jsonrpc.Message{Method: "m", Params: raw(nested(jsonrpc.MaxDepth - 1))},
			jsonrpc.Notification,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := jsonrpc.Parse([]byte(test.line))
			if err != nil {
				t.Fatalf("Parse(%q) = %v", test.line, err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("Parse(%q) (-want +got):\n%s", test.line, diff)
			}
			if got.Kind() != test.kind {
				t.Errorf("Kind() = %v, want %v", got.Kind(), test.kind)
			}
		})
	}
}

func nested(depth int) string {
	return strings.Repeat("[", depth) + strings.Repeat("]", depth)
}

func TestParseRefuses(t *testing.T) {
	tests := []struct{ line, problem string }{
		{``, "not an object"},
		{`Server listening on stdio`, "not an object"},
		{`[]`, "not an object"},
		{`"2.0"`, "not an object"},
		{`{}`, "no jsonrpc member"},
		{`{"jsonrpc":"2.0"}`, "neither method nor id"},
		{`{"jsonrpc":"2.0","result":{}}`, "neither method nor id"},
		{`{"jsonrpc":"1.0","id":1,"result":{}}`, `jsonrpc member is not "2.0"`},
		{`{"jsonrpc":2.0,"id":1,"result":{}}`, `jsonrpc member is not "2.0"`},
		{`{"jsonrpc":"2.0","id":{},"result":{}}`, "id is neither string nor number"},
		{`{"jsonrpc":"2.0","id":true,"result":{}}`, "id is neither string nor number"},
		{`{"jsonrpc":"2.0","id":null,"method":"m"}`, "request with id null"},
		{`{"jsonrpc":"2.0","id":1,"method":7}`, "method is not a name"},
		{`{"jsonrpc":"2.0","id":1,"method":""}`, "method is not a name"},
		{`{"jsonrpc":"2.0","id":1,"id":2,"result":{}}`, `repeated member "id"`},
		{`{"jsonrpc":"2.0","id":1,"result":{},"r\u0065sult":{}}`, `repeated member "r\u0065sult"`},
		{`{"jsonrpc":"2.0","id":1,"result":{}} {}`, "data after the message"},
		{`{"jsonrpc":"2.0","id":1,"result":{}`, "unexpected end"},
		{`{"jsonrpc":"2.0","id":1,"result":{},}`, "no member name"},
		{`{"jsonrpc":"2.0","id":01,"result":{}}`, "unexpected character"},
		{`{"jsonrpc":"2.0","id":1,"result":[1,]}`, "unexpected character"},
		{`{"jsonrpc":"2.0","id":1,"result":+1}`, "unexpected character"},
		{`{"jsonrpc":"2.0","id":1,"result":1.}`, "unexpected character"},
		{`{"jsonrpc":"2.0","id":1,"result":nul}`, "unexpected character"},
		{`{"jsonrpc":"2.0","id":1,"result":"\x"}`, "bad escape"},
		{`{"jsonrpc":"2.0","id":1,"result":"\u12g4"}`, "bad escape"},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"a\tb\"}", "control character in a string"},
		{`{"jsonrpc":"2.0","method":"m","params":` + nested(jsonrpc.MaxDepth) + `}`, "nested too deep"},
	}
	for _, test := range tests {
		_, err := jsonrpc.Parse([]byte(test.line))
		var syntax *jsonrpc.SyntaxError
		if !errors.As(err, &syntax) || syntax.Problem != test.problem {
			t.Errorf("Parse(%.80q) = %v, want problem %q", test.line, err, test.problem)
		}
	}
}

func TestParseOwnsItsBytes(t *testing.T) {
	line := []byte(`{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":"b"}}`)
	m, err := jsonrpc.Parse(line)
	if err != nil {
		t.Fatal(err)
	}
	clear(line)
	if got, want := string(m.Params), `{"a":"b"}`; got != want {
		t.Errorf("Params = %q after the line was reused, want %q", got, want)
	}
}

func TestInteger(t *testing.T) {
	tests := []struct {
		raw  string
		want int64
		ok   bool
	}{
		{`7`, 7, true},
		{`"7"`, 7, true},
		{`7.0`, 7, true},
		{`7e0`, 7, true},
		{`-3`, -3, true},
		{`7.5`, 0, false},
		{`""`, 0, false},
		{``, 0, false},
		{`null`, 0, false},
		{`"x"`, 0, false},
		{`9223372036854775808`, 0, false},
		{`1e400`, 0, false},
		{`"NaN"`, 0, false},
		{`{}`, 0, false},
	}
	for _, test := range tests {
		if got, ok := jsonrpc.Integer(raw(test.raw)); got != test.want || ok != test.ok {
			t.Errorf("Integer(%s) = %d, %t, want %d, %t", test.raw, got, ok, test.want, test.ok)
		}
	}
}

func TestAppend(t *testing.T) {
	tests := []struct {
		name string
		m    jsonrpc.Message
		want string
	}{
		{
			"request",
			jsonrpc.Message{ID: raw("1"), Method: "m", Params: raw(`{"b":1, "a":"<>&` + "\u2028" + `"}`)},
			`{"jsonrpc":"2.0","id":1,"method":"m","params":{"b":1, "a":"<>&` + "\u2028" + `"}}`,
		},
		{
			"line breaks are compacted",
			jsonrpc.Message{Method: "m", Params: raw("{\r\n  \"a\": \"<x> y\",\n  \"b\": [ 1 ]\n}\n")},
			`{"jsonrpc":"2.0","method":"m","params":{"a":"<x> y","b":[1]}}`,
		},
		{
			"carriage return",
			jsonrpc.Message{Method: "m", Params: raw("[1,\r2]")},
			`{"jsonrpc":"2.0","method":"m","params":[1,2]}`,
		},
		{
			"text is escaped",
			jsonrpc.Message{ID: raw("null"), Error: &jsonrpc.Error{Code: -1, Message: "a\"\\\n\t\x01<\u2028"}},
			`{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"a\"\\\n\t\u0001<` + "\u2028" + `"}}`,
		},
		{
			"error data",
			jsonrpc.Message{ID: raw(`"x"`), Error: &jsonrpc.Error{Data: raw("[1.0]")}},
			`{"jsonrpc":"2.0","id":"x","error":{"code":0,"message":"","data":[1.0]}}`,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := test.m.Append([]byte("> "))
			if err != nil || string(got) != "> "+test.want {
				t.Errorf("Append() = %q, %v, want %q", got, err, "> "+test.want)
			}
		})
	}
}

func TestAppendRefuses(t *testing.T) {
	tests := []jsonrpc.Message{
		{},
		{Result: raw("{}")},
		{ID: raw("null"), Method: "m"},
		{ID: raw("null"), Result: raw("{}")},
		{ID: raw("[]"), Method: "m"},
		{ID: raw(""), Method: "m"},
		{ID: raw("1 2"), Method: "m"},
		{Method: "m", Params: raw(``)},
		{Method: "m", Params: raw(`{}} {`)},
		{Method: "m", Params: raw(`{},"id":9`)},
		{Method: "m", Params: raw("\"a\nb\"")},
		{ID: raw("1"), Result: raw(`{`)},
		{ID: raw("1"), Error: &jsonrpc.Error{Data: raw(nested(jsonrpc.MaxDepth - 1))}},
	}
	for _, m := range tests {
		got, err := m.Append([]byte("> "))
		if err == nil || string(got) != "> " {
			t.Errorf("Append(%.60v) = %q, %v, want an error and the line unchanged", m, got, err)
		}
	}
}

func TestMembersAndElements(t *testing.T) {
	var names, values []string
	for m, err := range jsonrpc.Members([]byte(` { "a" : 1 , "\u0062":[ 2 ],"a":{"c":3} } `)) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, string(m.Name))
		values = append(values, string(m.Raw), string(m.Value))
	}
	if diff := cmp.Diff([]string{"a", "b", "a"}, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	want := []string{`"a" : 1`, `1`, `"\u0062":[ 2 ]`, `[ 2 ]`, `"a":{"c":3}`, `{"c":3}`}
	if diff := cmp.Diff(want, values); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	var elements []string
	for e, err := range jsonrpc.Elements([]byte(` [ 1 , {"a":[]}, "x" ] `)) {
		if err != nil {
			t.Fatal(err)
		}
		elements = append(elements, string(e))
	}
	if diff := cmp.Diff([]string{`1`, `{"a":[]}`, `"x"`}, elements); diff != "" {
		t.Errorf("elements (-want +got):\n%s", diff)
	}
	for _, bad := range []string{``, `1`, `{`, `{"a"}`, `{"a":1,}`, `{"a":1}}`, `[1`, `[1,]`, `[1]2`, `[,1]`} {
		var last error
		if strings.HasPrefix(bad, "[") {
			for _, err := range jsonrpc.Elements([]byte(bad)) {
				last = err
			}
		} else {
			for _, err := range jsonrpc.Members([]byte(bad)) {
				last = err
			}
		}
		if last == nil {
			t.Errorf("walking over %q ended without an error", bad)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":"1","method":"tools/call","params":{"name":"a","arguments":{"x":[1,2.5e3,null,true]}}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","error":{"code":-32000,"message":"a\u0000b","data":"\ud800"}}`))
	f.Add([]byte("{\"jsonrpc\":\"2.0\",\n\"id\":1,\r\n\"result\":{\n\"a\": 1}}"))
	f.Fuzz(func(t *testing.T, line []byte) {
		m, err := jsonrpc.Parse(line)
		if err != nil {
			return
		}
		if !json.Valid([]byte(strings.TrimPrefix(string(line), "\ufeff"))) {
			t.Fatalf("Parse(%q) accepted what is not JSON", line)
		}
		encoded, err := m.Append(nil)
		if err != nil {
			t.Fatalf("Append() = %v for what Parse(%q) accepted", err, line)
		}
		if strings.ContainsAny(string(encoded), "\r\n") {
			t.Fatalf("Append() = %q, has a line break", encoded)
		}
		again, err := jsonrpc.Parse(encoded)
		if err != nil {
			t.Fatalf("Parse(%q) = %v for what Append wrote", encoded, err)
		}
		if diff := cmp.Diff(flat(t, m), flat(t, again)); diff != "" {
			t.Fatalf("members changed (-before +after):\n%s", diff)
		}
	})
}

// flat compacts raw members that have line breaks, as the wire does.
func flat(t *testing.T, m jsonrpc.Message) jsonrpc.Message {
	t.Helper()
	compact := func(value json.RawMessage) json.RawMessage {
		if !strings.ContainsAny(string(value), "\r\n") {
			return value
		}
		var b strings.Builder
		inString := false
		for i := 0; i < len(value); i++ {
			c := value[i]
			switch {
			case inString && c == '\\':
				b.WriteByte(c)
				i++
				c = value[i]
			case c == '"':
				inString = !inString
			case !inString && strings.IndexByte(" \t\r\n", c) >= 0:
				continue
			}
			b.WriteByte(c)
		}
		return json.RawMessage(b.String())
	}
	m.Params, m.Result = compact(m.Params), compact(m.Result)
	if m.Error != nil {
		e := *m.Error
		e.Data = compact(e.Data)
		m.Error = &e
	}
	return m
}

const sample = `{"jsonrpc":"2.0","id":1234,"method":"tools/call","params":{"name":"read_file","arguments":{"path":"/srv/data/report.txt","head":20,"flags":["a","b"]},"_meta":{"progressToken":17,"traceparent":"00-ab"}}}`

func BenchmarkParse(b *testing.B) {
	line := []byte(sample)
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := jsonrpc.Parse(line); err != nil {
			b.Fatal(err)
		}
	}
}

func TestParseAllocations(t *testing.T) {
	line := []byte(sample)
	got := testing.AllocsPerRun(100, func() { _, _ = jsonrpc.Parse(line) })
	if got > 3 {
		t.Errorf("Parse of %d bytes makes %v allocations, want at most 3", len(line), got)
	}
}

func BenchmarkAppend(b *testing.B) {
	m, err := jsonrpc.Parse([]byte(sample))
	if err != nil {
		b.Fatal(err)
	}
	var line []byte
	b.ReportAllocs()
	for b.Loop() {
		if line, err = m.Append(line[:0]); err != nil {
			b.Fatal(err)
		}
	}
}
