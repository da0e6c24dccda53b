// Command demo is the MCP server of the demo: it echoes, adds, waits with
// progress, and reports what its container looks like from inside.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	if err := newServer().Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func newServer() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "demo", Title: "Demo", Version: "1.0.0"}, nil)
	closed := false
	mcp.AddTool(server, &mcp.Tool{
		Name:        "echo",
		Description: "Returns the text it is given.",
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: &closed},
	}, echo)
	mcp.AddTool(server, &mcp.Tool{
		Name:        "add",
		Description: "Adds two numbers.",
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: &closed},
	}, add)
	mcp.AddTool(server, &mcp.Tool{
		Name:        "sleep",
		Description: "Waits, and reports progress while it does.",
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: &closed},
	}, sleep)
	mcp.AddTool(server, &mcp.Tool{
		Name:        "sandbox",
		Description: "Reports from inside the container who it runs as, which capabilities, limits and mounts it has, and what network it can reach.",
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true},
	}, inspect)
	return server
}

type echoInput struct {
	Text string `json:"text" jsonschema:"What to return."`
}

func echo(_ context.Context, _ *mcp.CallToolRequest, in echoInput) (*mcp.CallToolResult, any, error) {
	return text(in.Text), nil, nil
}

type addInput struct {
	A float64 `json:"a"`
	B float64 `json:"b"`
}

type addOutput struct {
	Sum float64 `json:"sum"`
}

func add(_ context.Context, _ *mcp.CallToolRequest, in addInput) (*mcp.CallToolResult, addOutput, error) {
	sum := in.A + in.B
	return text(fmt.Sprintf("%g", sum)), addOutput{sum}, nil
}

type sleepInput struct {
	Milliseconds int `json:"ms" jsonschema:"How long to wait in milliseconds."`
}

// steps is how often sleep says how far it is.
const steps = 10

func sleep(ctx context.Context, request *mcp.CallToolRequest, in sleepInput) (*mcp.CallToolResult, any, error) {
	if in.Milliseconds < 0 {
		return nil, nil, fmt.Errorf("ms is %d, want 0 or more", in.Milliseconds)
	}
	token := request.Params.GetProgressToken()
	whole := time.Duration(in.Milliseconds) * time.Millisecond
	begun := time.Now()
	for step := 1; step <= steps; step++ {
		timer := time.NewTimer(time.Until(begun.Add(whole * time.Duration(step) / steps)))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, nil, ctx.Err()
		}
		if token == nil {
			continue
		}
		if err := request.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
			ProgressToken: token,
			Progress:      float64(in.Milliseconds*step) / steps,
			Total:         float64(in.Milliseconds),
			Message:       fmt.Sprintf("slept %d ms", in.Milliseconds*step/steps),
		}); err != nil {
			return nil, nil, err
		}
	}
	return text(fmt.Sprintf("slept %d ms", in.Milliseconds)), nil, nil
}

func inspect(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, report, error) {
	r, err := look(ctx)
	if err != nil {
		return nil, report{}, err
	}
	return text(r.String()), r, nil
}

func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}
