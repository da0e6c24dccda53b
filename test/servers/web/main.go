// Command web is an MCP server that listens on a port, for tests.
//
//	web [-sse] [-legacy] [-after DURATION] [-deaf] [-fail TEXT] [ADDRESS]
//
// It serves both generations of the protocol at /mcp, or with -legacy only
// that of sessions, and with -sse the older transport at /sse. With -after it
// listens late; with -deaf it ignores SIGTERM; with -fail it says why it cannot
// start, and exits.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A face is what the server shows.
type face struct{ sse, legacy bool }

func main() {
	var f face
	flag.BoolVar(&f.sse, "sse", false, "serve the older transport")
	flag.BoolVar(&f.legacy, "legacy", false, "serve sessions only")
	after := flag.Duration("after", 0, "listen after this time")
	deaf := flag.Bool("deaf", false, "ignore SIGTERM")
	fail := flag.String("fail", "", "do not start, and say this")
	flag.Parse()
	if *fail != "" {
		_, _ = fmt.Fprintln(os.Stderr, "web:", *fail)
		os.Exit(3)
	}
	if *deaf {
		signal.Ignore(syscall.SIGTERM)
	}
	address := "127.0.0.1:8080"
	if flag.NArg() > 0 {
		address = flag.Arg(0)
	}
	fmt.Println("web: listening on", address) // stdout is no conversation here
	<-time.After(*after)
	server := &http.Server{Addr: address, Handler: f.handler(), ReadHeaderTimeout: time.Minute}
	_, _ = fmt.Fprintln(os.Stderr, "web:", server.ListenAndServe())
	os.Exit(1)
}

func (f face) handler() http.Handler {
	s := newServer()
	get := func(*http.Request) *mcp.Server { return s }
	mux := http.NewServeMux()
	if f.sse {
		mux.Handle("/sse", mcp.NewSSEHandler(get, nil))
		return mux
	}
	sessions := mcp.NewStreamableHTTPHandler(get, nil)
	modern := mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true})
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		if !f.legacy && r.Header.Get("Mcp-Protocol-Version") >= "2026-07-28" {
			modern.ServeHTTP(w, r)
			return
		}
		sessions.ServeHTTP(w, r)
	})
	return mux
}

func newServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "web", Version: "1.0.0"}, nil)
	tool := func(name, description string, do mcp.ToolHandler) {
		s.AddTool(&mcp.Tool{Name: name, Description: description, InputSchema: json.RawMessage(`{"type":"object"}`)}, do)
	}
	tool("echo", "Returns its arguments.", func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return text(string(req.Params.Arguments)), nil
	})
	tool("header", "Returns the Authorization header of its request.", func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if req.Extra == nil {
			return text(""), nil
		}
		return text(req.Extra.Header.Get("Authorization")), nil
	})
	tool("exit", "Ends the server.", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		_, _ = fmt.Fprintln(os.Stderr, "web: asked to exit")
		os.Exit(4)
		return nil, nil
	})
	return s
}

func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}
