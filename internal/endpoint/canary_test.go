package endpoint_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dockgate/dockgate/internal/access"
	"github.com/dockgate/dockgate/internal/access/accesstest"
	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/endpoint"
	"github.com/dockgate/dockgate/internal/gateway/gatewaytest"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest"
	"github.com/dockgate/dockgate/internal/store"
)

// A notebook is a writer for several.
type notebook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (n *notebook) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.Write(p)
}

func (n *notebook) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.String()
}

// A client's token is in no log at any level, in nothing that a server is
// given, in no answer and in no file of the gateway: whether it was good or not.
func TestTokenGoesNowhere(t *testing.T) {
	var log, given, answers notebook
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	issuer := accesstest.NewIssuer(t)
	const resource = "https://tools.example.com/mcp"
	server := func(ctx context.Context, c sandboxtest.Container) int {
		check(t, json.NewEncoder(&given).Encode(c.Spec))
		c.Stdin = io.TeeReader(c.Stdin, &given)
		return gatewaytest.SDKServer(echo)(ctx, c)
	}
	h := gatewaytest.Build(t, gatewaytest.Options{Mode: approval.ModeAll, Active: []string{"one"}, Logger: logger}, map[string]sandboxtest.Server{"test/one": server})
	db, err := store.Open(t.Context(), t.TempDir())
	check(t, err)
	t.Cleanup(func() { check(t, db.Close()) })
	f := &front{House: h, store: db}
	f.Endpoint = endpoint.New(endpoint.Options{
		Gateway: h.Gateway, Logger: logger,
		Access: access.New(access.Options{Source: db, Resource: resource, Issuers: []access.Issuer{{Name: "corp", URL: issuer.URL}}}),
	})
	listener, err := endpoint.Listen(t.Context(), "127.0.0.1:0")
	check(t, err)
	f.url = "http://" + listener.Addr().String() + endpoint.Path
	f.stop = f.serve(t, listener)

	own, gone := f.token(t, "ann"), f.token(t, "gone")
	check(t, db.DeleteToken(t.Context(), "gone"))
	signed := issuer.Token(t, accesstest.Request{Subject: "bob", Audience: []string{resource}})
	foreign := issuer.Token(t, accesstest.Request{Subject: "bob", Audience: []string{"https://other.example.com"}})
	for _, token := range []string{own, signed} {
		for _, version := range versions() {
			session := f.join(t, version, newClient(nil), token)
			result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "one__echo", Arguments: map[string]any{"a": 1}})
			check(t, err)
			_, err = answers.Write([]byte(text(result)))
			check(t, err)
		}
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: time.Minute}
	refused := func(path, authorization string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.url+path, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
		check(t, err)
		r.Header.Set("Content-Type", "application/json")
		if authorization != "" {
			r.Header.Set("Authorization", authorization)
		}
		answer, err := client.Do(r)
		check(t, err)
		check(t, answer.Header.Write(&answers))
		_, err = io.Copy(&answers, answer.Body)
		check(t, err)
		check(t, answer.Body.Close())
		if answer.StatusCode < 400 {
			t.Errorf("a request to %s = %s, want it refused", path, answer.Status)
		}
	}
	for _, token := range []string{gone, foreign, signed + "x"} {
		refused("", "Bearer "+token)
	}
	refused("", "Basic "+own)
	refused("", own)
	refused("?access_token="+own, "")
	check(t, f.stop())

	texts := map[string]string{"the log": log.String(), "what the server was given": given.String(), "an answer": answers.String()}
	// The folders of a test are beside each other.
	check(t, filepath.WalkDir(filepath.Dir(t.TempDir()), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		texts[path] = string(content)
		return err
	}))
	if len(texts) < 5 || !strings.Contains(texts["what the server was given"], "tools/call") || texts["the log"] == "" {
		t.Fatalf("looked at %d texts, and not at what there is", len(texts))
	}
	for _, token := range []string{own, gone, signed, foreign} {
		// Of a signed token the signature alone would tell.
		secret := token[strings.LastIndexByte(token, '.')+1:]
		for name, text := range texts {
			if strings.Contains(text, strings.TrimPrefix(secret, "dockgate_")) {
				t.Errorf("%s holds a token", name)
			}
		}
	}
}

// A token that is revoked in another process is refused here, and what its
// bearer has open ends. (How soon is held in package access, where time is not
// real.)
func TestRevokedElsewhere(t *testing.T) {
	dir := t.TempDir()
	here, err := store.Open(t.Context(), dir)
	check(t, err)
	t.Cleanup(func() { check(t, here.Close()) })
	elsewhere, err := store.Open(t.Context(), dir)
	check(t, err)
	t.Cleanup(func() { check(t, elsewhere.Close()) })
	server := newHanging()
	h := gatewaytest.Build(t, gatewaytest.Options{Mode: approval.ModeAll, Active: []string{"one"}, Logger: slog.New(slog.DiscardHandler)}, server.servers())
	f := &front{House: h, store: here}
	f.Endpoint = endpoint.New(endpoint.Options{
		Gateway: h.Gateway, Logger: slog.New(slog.DiscardHandler), Access: access.New(access.Options{Source: here}),
	})
	listener, err := endpoint.Listen(t.Context(), "127.0.0.1:0")
	check(t, err)
	f.url = "http://" + listener.Addr().String() + endpoint.Path
	f.stop = f.serve(t, listener)
	token := f.token(t, "ann")
	f.token(t, "bob")

	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: time.Minute}
	send := func(method, body, session string) *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), method, f.url, strings.NewReader(body))
		check(t, err)
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		if session != "" {
			r.Header.Set("Mcp-Session-Id", session)
		}
		answer, err := client.Do(r)
		check(t, err)
		t.Cleanup(func() { _ = answer.Body.Close() })
		return answer
	}
	begun := send(http.MethodPost, hello, "")
	news := send(http.MethodGet, "", begun.Header.Get("Mcp-Session-Id"))
	if begun.StatusCode != http.StatusOK || news.StatusCode != http.StatusOK {
		t.Fatalf("with a good token: %s, %s", begun.Status, news.Status)
	}
	called := make(chan struct{})
	go func() {
		defer close(called)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.url, strings.NewReader(strings.ReplaceAll(legacyCall, "echo", "hang")))
		if err != nil {
			t.Error(err)
			return
		}
		r.Header = news.Request.Header.Clone()
		if answer, err := client.Do(r); err == nil {
			_ = answer.Body.Close()
		}
	}()
	within(t, server.began, "the call")
	check(t, elsewhere.DeleteToken(t.Context(), "ann"))
	within(t, server.cancelled, "the end of the call of who is refused now")
	within(t, called, "the answer to it")
	_, _ = io.Copy(io.Discard, news.Body) // until the stream ends, which it would not do by itself
	if refused := send(http.MethodPost, hello, ""); refused.StatusCode != http.StatusUnauthorized {
		t.Errorf("after the token was revoked elsewhere: %s, want 401", refused.Status)
	}
}
