package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rogpeppe/go-internal/testscript"
)

// A website is a remote server, which lets in whoever has the token.
type website struct {
	server  *httptest.Server
	handler atomic.Pointer[http.Handler]
}

// websiteToken is what it wants to see.
const websiteToken = "CANARY-7f31"

// begin starts the program anew: it knows no sessions.
func (w *website) begin() {
	s := mcp.NewServer(&mcp.Implementation{Name: "web", Version: "1"}, nil)
	s.AddTool(&mcp.Tool{Name: "echo", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(req.Params.Arguments)}}}, nil
		})
	inner := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)
	var handler http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/moved" {
			http.Redirect(w, r, "http://127.0.0.1:1/?"+r.URL.RawQuery, http.StatusTemporaryRedirect)
			return
		}
		if r.Header.Get("Authorization") != "Bearer "+websiteToken {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	})
	w.handler.Store(&handler)
}

// runWebsite is "website FILE", which starts a remote server and puts its URL
// in the place of WEBSITE in the file, and "website", which starts it anew.
func runWebsite(ts *testscript.TestScript, neg bool, args []string) {
	l := ts.Value("line").(*line)
	switch {
	case neg || len(args) > 1:
		ts.Fatalf("usage: website [FILE]")
	case len(args) == 0:
		l.website.begin()
		return
	}
	w := &website{}
	w.begin()
	w.server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		(*w.handler.Load()).ServeHTTP(rw, r)
	}))
	l.website = w
	ts.Defer(func() {
		w.server.CloseClientConnections()
		w.server.Close()
	})
	path := ts.MkAbs(args[0])
	content := strings.ReplaceAll(ts.ReadFile(args[0]), "WEBSITE", w.server.URL)
	ts.Check(os.WriteFile(path, []byte(content), 0o600))
}
