package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/dockgate/dockgate/internal/access"
	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/fleet"
	"github.com/dockgate/dockgate/internal/gateway"
	"github.com/dockgate/dockgate/internal/gateway/gatewaytest"
	"github.com/dockgate/dockgate/internal/gateway/menu"
	"github.com/dockgate/dockgate/internal/meta"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/rules"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A house is a gateway with everything below it: real but for the engine.
type house struct {
	*gateway.Gateway
	fake  *sandboxtest.Fake
	book  *approval.Book
	fleet *fleet.Fleet
}

// build makes a house whose images run the servers.
func build(t testing.TB, o options, servers map[string]sandboxtest.Server) *house {
	t.Helper()
	h := gatewaytest.Build(t, gatewaytest.Options{Mode: o.mode, Wait: o.wait, Expose: o.expose, Prefix: o.prefix, Active: o.active, Rules: o.rules, Roles: o.roles, Catalog: o.catalog}, servers)
	return &house{Gateway: h.Gateway, fake: h.Fake, book: h.Book, fleet: h.Fleet}
}

func sdkServer(build func(s *mcp.Server)) sandboxtest.Server { return gatewaytest.SDKServer(build) }

type options struct {
	mode   approval.Mode
	wait   time.Duration
	expose []meta.Group
	prefix menu.Prefix
	active []string
	rules  rules.Rules
	roles  access.Roles
	// catalog is in place of the one of gatewaytest.
	catalog string
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// join connects a client of the official SDK over pipes, as over stdio.
func (h *house) join(t *testing.T, client *mcp.Client, versions ...string) *mcp.ClientSession {
	t.Helper()
	return h.joinAs(t, principal.Local, client, versions...)
}

// joinAs is join for a client of somebody else.
func (h *house) joinAs(t *testing.T, who principal.Principal, client *mcp.Client, versions ...string) *mcp.ClientSession {
	t.Helper()
	toServer, fromClient := io.Pipe()
	toClient, fromServer := io.Pipe()
	served := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	go func() { served <- h.Serve(ctx, toServer, fromServer, who) }()
	var hello *mcp.ClientSessionOptions
	if len(versions) > 0 {
		hello = &mcp.ClientSessionOptions{ProtocolVersion: versions[0]}
	}
	session, err := client.Connect(ctx, &mcp.IOTransport{Reader: toClient, Writer: fromClient}, hello)
	check(t, err)
	t.Cleanup(func() {
		_ = session.Close()
		_ = fromClient.Close()
		cancel()
		if err := <-served; err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("Serve = %v", err)
		}
	})
	return session
}

func echo(s *mcp.Server) {
	s.AddTool(&mcp.Tool{Name: "echo", Description: "Says it again", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(req.Params.Arguments)}}}, nil
		})
}

func names(t *testing.T, session *mcp.ClientSession) []string {
	t.Helper()
	list, err := session.ListTools(t.Context(), nil)
	check(t, err)
	var all []string
	for _, listed := range list.Tools {
		all = append(all, listed.Name)
	}
	return all
}

func text(result *mcp.CallToolResult) string {
	if result == nil {
		return ""
	}
	var all []string
	for _, content := range result.Content {
		if said, ok := content.(*mcp.TextContent); ok {
			all = append(all, said.Text)
		}
	}
	return strings.Join(all, "\n")
}

func invoke(t *testing.T, session *mcp.ClientSession, name string, arguments any) *mcp.CallToolResult {
	t.Helper()
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments})
	check(t, err)
	return result
}

// versions are the last of the legacy era and the first of the modern one.
func versions() []string { return []string{"2025-11-25", "2026-07-28"} }

func answering(decision string, asked *[]string) *mcp.Client {
	var mu sync.Mutex
	return mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			mu.Lock()
			defer mu.Unlock()
			*asked = append(*asked, req.Params.Message)
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": decision}}, nil
		},
	})
}
