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
