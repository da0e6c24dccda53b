package endpoint_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dockgate/dockgate/internal/endpoint"
	"github.com/dockgate/dockgate/internal/jsonrpc"
)

const (
	modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	modernList = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + modernMeta + `}}`
	legacyCall = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"one__echo","arguments":{}}}`
	modernCall = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"one__echo","arguments":{},` + modernMeta + `}}`
)

// modernHeaders are those that a request of the modern era needs.
func modernHeaders(method string, more ...string) []string {
	return append([]string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", method}, more...)
}

// answerOf returns the status and the JSON-RPC error code of a response; zero
// if it holds no error.
func answerOf(t testing.TB, w *httptest.ResponseRecorder) (status int, code int64) {
	t.Helper()
	body := w.Body.String()
	if _, data, ok := strings.Cut(body, "data: "); ok {
		body, _, _ = strings.Cut(data, "\n")
	}
	if strings.TrimSpace(body) == "" || body == ": ok" {
		return w.Code, 0
	}
	m, err := jsonrpc.Parse([]byte(body))
	if err != nil {
		t.Errorf("body %q is no JSON-RPC message: %v", w.Body, err)
		return w.Code, 0
	}
	if m.Error != nil {
		code = m.Error.Code
	}
	return w.Code, code
}

// Every malformed request gets the specification's status and code.
func TestBadInput(t *testing.T) {
	f := open(t, options{}, echoing())
	session := post(t, f, initialize).Header().Get("Mcp-Session-Id")
	if session == "" {
		t.Fatal("initialize began no session")
	}
	in := []string{"Mcp-Session-Id", session, "Mcp-Protocol-Version", "2025-11-25"}
	tests := []struct {
		name    string
		headers []string
		body    string
		status  int
		code    int64
	}{
		{"empty body", in, ``, 400, -32700},
		{"no JSON", in, `{"jsonrpc":`, 400, -32700},
		{"words", in, `hello`, 400, -32700},
		{"no message", in, `{"id":1}`, 400, -32600},
		{"other version of JSON-RPC", in, `{"jsonrpc":"1.0","id":1,"method":"ping"}`, 400, -32600},
		{"id that is an object", in, `{"jsonrpc":"2.0","id":{},"method":"ping"}`, 400, -32600},
		{"id null", in, `{"jsonrpc":"2.0","id":null,"method":"ping"}`, 400, -32600},
		{"two ids", in, `{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`, 400, -32600},
		{"too deep", in, `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + `}}`, 400, -32600},
		{"unknown method", in, `{"jsonrpc":"2.0","id":1,"method":"no/such"}`, 200, -32601},
		{"unknown tool", in, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"none"}}`, 200, -32602},
		{"name that is a number", in, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":1}}`, 200, -32602},
		{"name missing", in, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}`, 200, -32602},
		{"meta that is a list", in, strings.Replace(legacyCall, `{"name"`, `{"_meta":[],"name"`, 1), 200, -32602},
		{"call of no session", []string{"Mcp-Session-Id", "none"}, legacyCall, 404, -32600},
		{"modern call in no session", []string{
			"Mcp-Session-Id", "none", "Mcp-Protocol-Version", "2025-11-25", "Mcp-Method", "tools/list", "Mcp-Name", "other",
		}, modernCall, 404, -32600},
		{"name in disguise", in, strings.Replace(legacyCall, `"name"`, `"Name":"other","name"`, 1), 200, -32602},
		{"name twice", in, strings.Replace(legacyCall, `"name"`, `"name":"other","name"`, 1), 200, -32602},
		{"arguments in disguise", in, strings.Replace(legacyCall, `"arguments":{}`, `"arguments":{},"argument\u017f":{"a":1}`, 1), 200, -32602},
		{"modern arguments in disguise", modernHeaders("tools/call", "Mcp-Name", "one__echo"), strings.Replace(modernCall, `"arguments":{}`, `"arguments":{},"ARGUMENTS":{"a":1}`, 1), 400, -32602},
		{"call of an unknown version", []string{"Mcp-Session-Id", session, "Mcp-Protocol-Version", "1999-01-01"}, legacyCall, 400, -32600},
		{"call that is not JSON by its type", append(in[:len(in):len(in)], "Content-Type", "text/plain"), legacyCall, 415, -32600},
		{"call whose answer may not be a stream", append(in[:len(in):len(in)], "Accept", "application/json"), legacyCall, 400, -32600},
		{"call that resumes", append(in[:len(in):len(in)], "Last-Event-Id", "a_1"), legacyCall, 400, -32600},
		{"call of the other era in a session", in, modernCall, 400, -32022},
		{"call", in, legacyCall, 200, 0},
		{"params that are a list", in, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[1]}`, 200, -32602},
		{"params missing", in, `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, 200, -32602},
		{"params null", in, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":null}`, 200, -32602},
		{"prompt without params", in, `{"jsonrpc":"2.0","id":1,"method":"prompts/get"}`, 200, -32602},
		{"resource without a URI", in, `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{}}`, 200, -32602},
		{"URI that is a number", in, `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":1}}`, 200, -32602},
		{"subscription without params", in, `{"jsonrpc":"2.0","id":1,"method":"resources/subscribe"}`, 200, -32602},
		{"completion without a reference", in, `{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"argument":{"name":"a","value":"b"}}}`, 200, -32602},
		{"completion of a reference that is none", in, `{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":{"type":"x"},"argument":{"name":"a","value":"b"}}}`, 200, -32602},
		{"level that is none", in, `{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"loud"}}`, 200, -32602},
		{"cursor that is none", in, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"?"}}`, 200, -32602},
		{"cursor that is a number", in, `{"jsonrpc":"2.0","id":1,"method":"prompts/list","params":{"cursor":1}}`, 200, -32602},
		{"second initialize", in, initialize, 200, -32600},
		{"id of a fraction", in, `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, 400, -32600},
		{"id too large", in, `{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`, 400, -32600},
		{"request that is a notification", in, `{"jsonrpc":"2.0","method":"ping"}`, 400, -32600},
		{"notification that is a request", in, `{"jsonrpc":"2.0","id":1,"method":"notifications/initialized"}`, 400, -32600},
		{"notification that nobody knows", in, `{"jsonrpc":"2.0","method":"notifications/vendor"}`, 202, 0},
		{"progress without params", in, `{"jsonrpc":"2.0","method":"notifications/progress"}`, 400, -32600},
		{"server/discover in a session", in, `{"jsonrpc":"2.0","id":1,"method":"server/discover"}`, 200, -32601},
		{"listen in a session", in, `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{}}}`, 200, -32601},
		{"initialize without params", nil, `{"jsonrpc":"2.0","id":1,"method":"initialize"}`, 200, -32602},
		{"initialize with a list", nil, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":[]}`, 200, -32602},
		{"initialize without a version", nil, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`, 200, 0},
		{"no session", nil, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, 400, -32600},
		{"no such session", []string{"Mcp-Session-Id", "none"}, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, 404, -32600},
		{"unknown version", []string{"Mcp-Session-Id", session, "Mcp-Protocol-Version", "1999-01-01"}, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, 400, -32600},
		{"not JSON by its type", append(in[:len(in):len(in)], "Content-Type", "text/plain"), `{"jsonrpc":"2.0","id":1,"method":"ping"}`, 415, -32600},
		{"answer not wanted", append(in[:len(in):len(in)], "Accept", "text/html"), `{"jsonrpc":"2.0","id":1,"method":"ping"}`, 400, -32600},
		{"batch of today", in, `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, 400, -32600},
		{"empty batch", in, `[]`, 400, -32600},
		{"notification", in, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}`, 202, 0},
		{"ping", in, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, 200, 0},

		{"modern list", modernHeaders("tools/list"), modernList, 200, 0},
		{"modern without header", nil, modernList, 400, -32020},
		{"modern without method header", []string{"Mcp-Protocol-Version", "2026-07-28"}, modernList, 400, -32020},
		{"other method in header", modernHeaders("tools/call"), modernList, 400, -32020},
		{"other version in header", []string{"Mcp-Protocol-Version", "2026-07-29", "Mcp-Method", "tools/list"}, modernList, 400, -32020},
		{"version of the future", []string{"Mcp-Protocol-Version", "2099-01-01", "Mcp-Method", "tools/list"}, strings.ReplaceAll(modernList, "2026-07-28", "2099-01-01"), 400, -32022},
		{"no capabilities", modernHeaders("tools/list"), `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`, 400, -32602},
		{"no meta", modernHeaders("tools/list"), `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, 400, -32602},
		{"unknown modern method", modernHeaders("no/such"), `{"jsonrpc":"2.0","id":1,"method":"no/such","params":{` + modernMeta + `}}`, 404, -32601},
		{"modern ping, which is gone", modernHeaders("ping"), `{"jsonrpc":"2.0","id":1,"method":"ping","params":{` + modernMeta + `}}`, 404, -32601},
		{"name missing in header", modernHeaders("tools/call"), modernCall, 400, -32020},
		{"other name in header", modernHeaders("tools/call", "Mcp-Name", "other"), modernCall, 400, -32020},
		{"name in Base64", modernHeaders("tools/call", "Mcp-Name", "=?base64?b25lX19lY2hv?="), modernCall, 200, 0},
		{"other name in Base64", modernHeaders("tools/call", "Mcp-Name", "=?base64?b3RoZXI=?="), modernCall, 400, -32020},
		{"no Base64", modernHeaders("tools/call", "Mcp-Name", "=?base64?!?="), modernCall, 400, -32020},
		{"call without method header", []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Name", "one__echo"}, modernCall, 400, -32020},
		{"call without version header", nil, modernCall, 400, -32020},
		{"call of another version than its header", modernHeaders("tools/call", "Mcp-Name", "one__echo"), strings.ReplaceAll(modernCall, "2026-07-28", "2026-07-29"), 400, -32020},
		{"call without capabilities", modernHeaders("tools/call", "Mcp-Name", "one__echo"), strings.ReplaceAll(modernCall, `,"io.modelcontextprotocol/clientCapabilities":{}`, ""), 400, -32602},
		{"call with a list of capabilities", modernHeaders("tools/call", "Mcp-Name", "one__echo"), strings.ReplaceAll(modernCall, `Capabilities":{}`, `Capabilities":[]`), 400, -32602},
		{"call of somebody who is a number", modernHeaders("tools/call", "Mcp-Name", "one__echo"), strings.ReplaceAll(modernCall, `Capabilities":{}`, `Capabilities":{},"io.modelcontextprotocol/clientInfo":1`), 400, -32602},
		{"modern call", modernHeaders("tools/call", "Mcp-Name", "one__echo"), modernCall, 200, 0},
		{"modern call without params", modernHeaders("tools/call", "Mcp-Name", "one__echo"), `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, 400, -32602},
		{"modern call with params null", modernHeaders("tools/call", "Mcp-Name", "one__echo"), `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":null}`, 400, -32602},
		{"modern batch", modernHeaders("tools/list"), `[` + modernList + `]`, 400, -32600},
		{"modern initialize", modernHeaders("initialize"), `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2026-07-28","capabilities":{},"clientInfo":{"name":"a","version":"1"},` + modernMeta + `}}`, 404, -32601},
		{"modern listen for nothing said", modernHeaders("subscriptions/listen"), `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{` + modernMeta + `}}`, 400, -32602},
		{"modern cursor that is none", modernHeaders("tools/list"), strings.Replace(modernList, `"params":{`, `"params":{"cursor":"?",`, 1), 400, -32602},
		{"modern resource that is none", modernHeaders("resources/read", "Mcp-Name", "x:y"), `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"x:y",` + modernMeta + `}}`, 400, -32602},
		{"modern prompt that is none", modernHeaders("prompts/get", "Mcp-Name", "none"), `{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"none",` + modernMeta + `}}`, 400, -32602},
		{"modern request state that is none", modernHeaders("tools/call", "Mcp-Name", "one__echo"), strings.Replace(modernCall, `"arguments":{}`, `"arguments":{},"requestState":"x","inputResponses":{}`, 1), 400, -32602},
		{"modern request state of nobody", modernHeaders("tools/call", "Mcp-Name", "one__echo"), strings.Replace(modernCall, `"arguments":{}`, `"arguments":{},"requestState":"dockgate:x","inputResponses":{}`, 1), 400, -32602},
		{"unknown modern tool", modernHeaders("tools/call", "Mcp-Name", "none"), strings.ReplaceAll(modernCall, "one__echo", "none"), 400, -32602},
	}
	for _, tt := range tests {
		w := post(t, f, tt.body, tt.headers...)
		if status, code := answerOf(t, w); status != tt.status || code != tt.code {
			t.Errorf("%s: POST = %d, code %d: %s, want %d, %d", tt.name, status, code, w.Body, tt.status, tt.code)
		}
	}
}

// A DELETE that is refused ends no session.
func TestRefusedDelete(t *testing.T) {
	f := open(t, options{}, echoing())
	session := post(t, f, initialize).Header().Get("Mcp-Session-Id")
	for version, status := range map[string]int{"2026-07-28": 405, "1999-01-01": 400} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodDelete, "http://localhost"+endpoint.Path, nil)
		r.Header.Set("Mcp-Session-Id", session)
		r.Header.Set("Mcp-Protocol-Version", version)
		w := httptest.NewRecorder()
		f.ServeHTTP(w, r)
		if w.Code != status {
			t.Errorf("DELETE in version %s = %d %s, want %d", version, w.Code, w.Body, status)
		}
		if w := post(t, f, legacyCall, "Mcp-Session-Id", session, "Mcp-Protocol-Version", "2025-11-25"); w.Code != http.StatusOK || strings.Contains(w.Body.String(), `"error"`) {
			t.Errorf("a call after it = %d %s, want its result", w.Code, w.Body)
		}
	}
}

func TestOtherMethods(t *testing.T) {
	f := open(t, options{}, echoing())
	tests := []struct {
		method  string
		headers []string
		status  int
		allow   string
	}{
		{http.MethodGet, nil, 400, ""},
		{http.MethodGet, []string{"Mcp-Session-Id", "none"}, 404, ""},
		{http.MethodDelete, nil, 400, ""},
		{http.MethodDelete, []string{"Mcp-Session-Id", "none"}, 404, ""},
		{http.MethodPut, nil, 405, "GET, POST, DELETE"},
		{http.MethodOptions, []string{"Origin", "http://localhost"}, 405, "GET, POST, DELETE"},
		{http.MethodGet, []string{"Mcp-Protocol-Version", "2026-07-28"}, 405, "POST"},
		{http.MethodDelete, []string{"Mcp-Protocol-Version", "2026-07-28"}, 405, "POST"},
	}
	for _, tt := range tests {
		r := httptest.NewRequestWithContext(t.Context(), tt.method, "http://localhost"+endpoint.Path, nil)
		r.Header.Set("Accept", "text/event-stream")
		for i := 0; i+1 < len(tt.headers); i += 2 {
			r.Header.Set(tt.headers[i], tt.headers[i+1])
		}
		w := httptest.NewRecorder()
		f.ServeHTTP(w, r)
		if status, _ := answerOf(t, w); status != tt.status || w.Header().Get("Allow") != tt.allow {
			t.Errorf("%s %v = %d, Allow %q: %s, want %d, %q", tt.method, tt.headers, status, w.Header().Get("Allow"), w.Body, tt.status, tt.allow)
		}
		if got := w.Header().Get("Access-Control-Allow-Origin"); got != "" {
			t.Errorf("%s answers CORS: %q", tt.method, got)
		}
	}
}

// FuzzMCP sends whatever there is: nothing of it may be answered with a 500,
// and every refusal is a JSON-RPC error.
func FuzzMCP(f *testing.F) {
	front := open(f, options{limits: endpoint.Limits{Rate: 1e9, Burst: 1e9, Sessions: 20}}, echoing())
	session := post(f, front, initialize).Header().Get("Mcp-Session-Id")
	old := post(f, front, initializeOld).Header().Get("Mcp-Session-Id")
	for _, body := range []string{
		initialize, modernList, modernCall, ``, `[]`, `{}`, `null`, `"x"`,
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"mcp_find","arguments":{"query":"x"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":1.5},"name":"one__echo"}}`,
		`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":1,"method":"ping"}]`,
		`{"jsonrpc":"2.0","id":1,"result":{}}`,
		`{"jsonrpc":"2.0","id":"x","method":"completion/complete","params":{"ref":{"type":"ref/prompt"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"x:"}}`,
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1}}`,
		`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{},` + modernMeta + `}}`,
	} {
		f.Add(http.MethodPost, true, "2025-11-25", "", "", body)
		f.Add(http.MethodPost, false, "2026-07-28", "tools/list", "x", body)
		f.Add(http.MethodPost, true, "2025-03-26", "", "", body)
	}
	f.Add(http.MethodDelete, false, "", "", "", "")
	f.Fuzz(func(t *testing.T, method string, joined bool, version, methodHeader, name, body string) {
		switch method {
		case http.MethodPost, http.MethodPut, http.MethodDelete:
		default:
			method = http.MethodPost
		}
		if strings.Contains(body, "subscriptions") && !json.Valid([]byte(body)) {
			return
		}
		r := httptest.NewRequestWithContext(t.Context(), method, "http://localhost"+endpoint.Path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		for header, value := range map[string]string{"Mcp-Protocol-Version": version, "Mcp-Method": methodHeader, "Mcp-Name": name} {
			if value != "" {
				r.Header[header] = []string{value}
			}
		}
		if joined && method != http.MethodDelete {
			r.Header.Set("Mcp-Session-Id", session)
			if version == "2025-03-26" { // which has batches
				r.Header.Set("Mcp-Session-Id", old)
			}
		}
		w := httptest.NewRecorder()
		front.ServeHTTP(w, r)
		if w.Code >= 500 {
			t.Errorf("%s = %d %s", body, w.Code, w.Body)
		}
		if strings.Contains(w.Body.String(), `"error":{"code":0,`) {
			t.Errorf("%s = %d %s, an error without a code", body, w.Code, w.Body)
		}
		if w.Code >= 400 && method != http.MethodDelete {
			if _, code := answerOf(t, w); code == 0 {
				t.Errorf("%s = %d %s, want a JSON-RPC error", body, w.Code, w.Body)
			}
		}
	})
}
