package endpoint_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// hangs begins a call that hangs, and returns where its answer will be.
func (f *front) hangs(t *testing.T, server *hanging, id string, session []string) <-chan string {
	t.Helper()
	answered := make(chan string, 1)
	go func() {
		response := f.ask(t, t.Context(), http.MethodPost, strings.NewReplacer(`"id":1`, `"id":`+id, "echo", "hang").Replace(legacyCall), session...)
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Error(err)
		}
		answered <- string(body)
	}()
	within(t, server.began, "the call")
	return answered
}

// An id is taken while its request is under way, whatever the other asks for,
// and however the id is written.
func TestDuplicateID(t *testing.T) {
	server := newHanging()
	f := open(t, options{}, server.servers())
	session := f.begin(t)
	answered := f.hangs(t, server, "7", session)
	tests := []struct {
		name, body string
		status     int
		code       int64
	}{
		{"call", strings.Replace(legacyCall, `"id":1`, `"id":7`, 1), 400, -32600},
		{"call, the id written otherwise", strings.Replace(legacyCall, `"id":1`, `"id":7.0`, 1), 400, -32600},
		{"ping", `{"jsonrpc":"2.0","id":7,"method":"ping"}`, 400, -32600},
		{"ping of another id", `{"jsonrpc":"2.0","id":"7","method":"ping"}`, 200, 0},
	}
	for _, tt := range tests {
		w := post(t, f, tt.body, session...)
		if status, code := answerOf(t, w); status != tt.status || code != tt.code {
			t.Errorf("%s = %d, code %d: %s, want %d, %d", tt.name, status, code, w.Body, tt.status, tt.code)
		}
	}
	close(server.let)
	if got := <-answered; !strings.Contains(got, `"id":7,"result":{`) || !strings.Contains(got, "done") {
		t.Errorf("the first call's answer = %s, want its result", got)
	}
	if w := post(t, f, strings.Replace(legacyCall, `"id":1`, `"id":7`, 1), session...); w.Code != http.StatusOK {
		t.Errorf("call with an id that is free again = %d %s, want 200", w.Code, w.Body)
	}
}

// The ids of a batch are taken as those of single requests are.
func TestDuplicateIDInBatch(t *testing.T) {
	server := newHanging()
	f := open(t, options{}, server.servers())
	session := sessionOf(t, f, initializeOld)
	answered := make(chan string, 1)
	go func() {
		answered <- post(t, f, batchOf(numbered(hangCall, "7"), numbered(hangProgress, `"a"`), `{"jsonrpc":"2.0","id":8,"method":"ping"}`), session...).Body.String()
	}()
	within(t, server.began, "the first call")
	within(t, server.began, "the second call")
	taken := func(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}` }
	tests := []struct {
		name, body string
		status     int
		code       int64
	}{
		{"call with an id of the batch", numbered(legacyCall, "7"), 400, -32600},
		{"ping with another", taken(`"a"`), 400, -32600},
		{"batch with one", batchOf(taken("20"), taken("7.0")), 400, -32600},
		{"batch with an id twice", batchOf(taken("21"), taken("21")), 400, -32600},
		{"id of the batch that was refused", taken("20"), 200, 0},
		{"id of the batch with an id twice", taken("21"), 200, 0},
	}
	for _, tt := range tests {
		w := post(t, f, tt.body, session...)
		if status, code := answerOf(t, w); status != tt.status || code != tt.code {
			t.Errorf("%s = %d, code %d: %s, want %d, %d", tt.name, status, code, w.Body, tt.status, tt.code)
		}
	}
	f.answers(t, taken("8"), session) // as soon as its request in the batch is answered
	close(server.let)
	if got := <-answered; strings.Count(got, "done") != 2 {
		t.Errorf("the batch's answers = %s, want both results", got)
	}
	for _, id := range []string{"7", `"a"`} {
		if w := post(t, f, taken(id), session...); w.Code != http.StatusOK {
			t.Errorf("ping with id %s, which is free again = %d %s, want 200", id, w.Code, w.Body)
		}
	}
}

// A batch's call can be cancelled, and a batch can cancel any call.
func TestCancelledInBatch(t *testing.T) {
	server := newHanging()
	f := open(t, options{}, server.servers())
	session := sessionOf(t, f, initializeOld)
	const notification = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`
	tests := []struct{ name, call, cancel string }{
		{"a batch's call, by itself", batchOf(hangCall), notification},
		{"a batch's call, in another", batchOf(hangCall), batchOf(notification)},
		{"a call past the SDK, in a batch", hangCall, batchOf(ping, notification)},
		{"a call through the SDK, in a batch", hangProgress, batchOf(ping, notification)},
	}
	for _, tt := range tests {
		answered := make(chan string, 1)
		go func() { answered <- post(t, f, tt.call, session...).Body.String() }()
		within(t, server.began, tt.name)
		if w := post(t, f, tt.cancel, session...); w.Code >= 300 {
			t.Errorf("%s: cancelling = %d %s, want success", tt.name, w.Code, w.Body)
		}
		within(t, server.cancelled, tt.name+": the cancellation at the server")
		if got := <-answered; strings.Contains(got, "done") {
			t.Errorf("%s: the answer = %s", tt.name, got)
		}
	}
}

// Batches are of one version of the protocol, the one that the session has
// agreed on, whatever its requests say.
func TestBatchVersion(t *testing.T) {
	f := open(t, options{}, echoing())
	for agreed, status := range map[string]int{"2024-11-05": 400, "2025-03-26": 200, "2025-06-18": 400, "2025-11-25": 400, "1999-01-01": 400} {
		session := sessionOf(t, f, strings.Replace(initialize, "2025-11-25", agreed, 1))
		for _, said := range []string{"", "2025-03-26"} {
			headers := session
			if said != "" {
				headers = append(headers, "Mcp-Protocol-Version", said)
			}
			w := post(t, f, batchOf(ping), headers...)
			if got, code := answerOf(t, w); got != status || code != map[int]int64{200: 0, 400: -32600}[status] {
				t.Errorf("batch with version %q in a session of %s = %d, code %d: %s, want %d", said, agreed, got, code, w.Body, status)
			}
		}
	}
	session := sessionOf(t, f, initializeOld)
	w := post(t, f, batchOf(ping, numbered(initializeOld, "2")), session...)
	if status, code := answerOf(t, w); status != 400 || code != -32600 {
		t.Errorf("batch with an initialize = %d, code %d: %s, want 400, -32600", status, code, w.Body)
	}
}

// A session's call is given up with a notification, by nobody but the session.
func TestCancelled(t *testing.T) {
	server := newHanging()
	f := open(t, options{}, server.servers())
	session, other := f.begin(t), f.begin(t)
	answered := f.hangs(t, server, `"a"`, session)
	const notification = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}`
	for _, headers := range [][]string{other, session} {
		select {
		case <-server.cancelled:
			t.Fatal("the call was given up by another session")
		default:
		}
		response := f.ask(t, t.Context(), http.MethodPost, notification, headers...)
		if response.StatusCode != http.StatusAccepted {
			t.Errorf("notification = %s, want 202", response.Status)
		}
	}
	within(t, server.cancelled, "the cancellation at the server")
	if got := <-answered; strings.Contains(got, "done") {
		t.Errorf("the answer to a call that was given up = %s", got)
	}
}

// A client with sessions who loses its connection has not given its call up:
// the id stays taken until the call ends.
func TestDisconnectOfSession(t *testing.T) {
	server := newHanging()
	f := open(t, options{}, server.servers())
	session := f.begin(t)
	leave, left := f.leaving(t, strings.ReplaceAll(legacyCall, "echo", "hang"), session...)
	within(t, server.began, "the call")
	leave()
	within(t, left, "the client's end")
	if w := post(t, f, legacyCall, session...); w.Code != http.StatusBadRequest {
		t.Errorf("another call with the id = %d %s, want 400", w.Code, w.Body)
	}
	close(server.let)
	for w := post(t, f, legacyCall, session...); w.Code != http.StatusOK; w = post(t, f, legacyCall, session...) {
		select {
		case <-server.cancelled:
			t.Fatal("the call of a client that has left was given up")
		default:
		}
	}
}
