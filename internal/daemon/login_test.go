package daemon_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dockgate/dockgate/internal/access"
	"github.com/dockgate/dockgate/internal/access/accesstest"
	"github.com/dockgate/dockgate/internal/call"
	"github.com/dockgate/dockgate/internal/daemon"
	"github.com/dockgate/dockgate/internal/daemon/daemontest"
	"github.com/dockgate/dockgate/internal/login"
	"github.com/dockgate/dockgate/internal/principal"
)

// tracker is a remote server that takes an issuer's tokens and no others. It
// returns its URL.
func tracker(t *testing.T, d *daemon.Daemon, issuer *accesstest.Issuer) string {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	url := "http://" + server.Listener.Addr().String() + "/mcp"
	door := access.New(access.Options{Source: d.Store, Resource: url, Issuers: []access.Issuer{{
		Name: "corp", URL: issuer.URL, Scopes: []access.ScopeRole{{Scope: "tools", Role: access.Owner}},
	}}})
	s := mcp.NewServer(&mcp.Implementation{Name: "tracker", Version: "1"}, nil)
	s.AddTool(&mcp.Tool{Name: "issues", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "none"}}}, nil
	})
	inner := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)
	mux := http.NewServeMux()
	mux.Handle(door.MetadataPath(), door.MetadataHandler())
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		var refused *access.RefusedError
		if _, err := door.Authenticate(r.Context(), r); errors.As(err, &refused) {
			w.Header().Set("WWW-Authenticate", refused.Challenge)
			w.WriteHeader(refused.Status)
			return
		}
		inner.ServeHTTP(w, r)
	})
	server.Config.Handler = mux
	server.Start()
	t.Cleanup(server.Close)
	return url
}

// A person logs the gateway in to a remote server; then callers use it.
func TestLogin(t *testing.T) {
	o := daemontest.Options(t, entries)
	issuer := accesstest.NewIssuer(t)
	first := daemontest.Open(t, o)
	url := tracker(t, first, issuer)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	entries := fmt.Sprintf("version: 1\nservers:\n  tracker: {remote: {url: %q, transport: streamable-http}}\n  local: {image: registry.example.com/notes:1}\n", url)
	if err := os.WriteFile(o.Config.Catalogs[0], []byte(entries), 0o600); err != nil {
		t.Fatal(err)
	}
	d := daemontest.Open(t, o)
	consent := func(ctx context.Context, address string) error {
		_, err := issuer.Consent(ctx, address)
		return err
	}
	var unapproved *daemon.UnapprovedError
	if err := d.Login(t.Context(), principal.Local, "tracker", login.Registration{}, consent); !errors.As(err, &unapproved) || unapproved.Hint() == "" {
		t.Errorf("Login before the approval = %v, want an UnapprovedError", err)
	}
	var local *daemon.NotRemoteError
	if err := d.Login(t.Context(), principal.Local, "local", login.Registration{}, consent); !errors.As(err, &local) {
		t.Errorf("Login to a server that runs here = %v, want a NotRemoteError", err)
	}
	made, err := d.Planner.Plan(t.Context(), principal.Local, "tracker")
	if err != nil {
		t.Fatal(err)
	}
	question, err := d.Ask(t.Context(), principal.Local, made)
	if err != nil {
		t.Fatal(err)
	}
	decide(t, d, *question)
	use := func(session string) error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		client := call.Client{Principal: principal.Local, Session: session, Via: "direct"}
		_, err := d.Caller.CallTool(ctx, client, "tracker", "issues", nil)
		return err
	}
	var wanted *login.LoginError
	err = use("a")
	if !errors.As(err, &wanted) || call.Code(err) != "LOGIN_REQUIRED" {
		t.Errorf("a call before the login = %v (%s), want a LoginError", err, call.Code(err))
	}
	if err := d.Login(t.Context(), principal.Local, "tracker", login.Registration{}, consent); err != nil {
		t.Fatalf("Login = %v", err)
	}
	if _, err := d.Fleet.Stop(t.Context(), "tracker"); err != nil { // and forget the failure
		t.Fatal(err)
	}
	if err := use("b"); err != nil {
		t.Errorf("a call after the login = %v", err)
	}
	if err := d.Logout(t.Context(), principal.Local, "tracker"); err != nil {
		t.Errorf("Logout = %v", err)
	}
	if err := d.Logout(t.Context(), principal.Local, "tracker"); !errors.Is(err, login.ErrNone) {
		t.Errorf("Logout again = %v, want ErrNone", err)
	}
	if n := len(slices.DeleteFunc(kinds(t, o.State), func(kind string) bool { return kind != "login" })); n != 2 {
		t.Errorf("%d records of logins, want 2", n)
	}
	left, err := filepath.Glob(filepath.Join(o.State, "logins", "*.age"))
	if err != nil || len(left) > 0 {
		t.Errorf("left of the login: %s (%v)", strings.Join(left, ", "), err)
	}
}
