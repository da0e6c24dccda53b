package remote_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dockgate/dockgate/internal/access"
	"github.com/dockgate/dockgate/internal/access/accesstest"
	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/login"
	"github.com/dockgate/dockgate/internal/remote"
	"github.com/dockgate/dockgate/internal/remote/door"
	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/upstream"
)

// nobody has made tokens of their own.
type nobody struct{}

func (nobody) TokenRevision(context.Context) (int64, error)   { return 1, nil }
func (nobody) Tokens(context.Context) ([]access.Token, error) { return nil, nil }

// A server that wants a login says so, and works once a person has logged in.
func TestLogin(t *testing.T) {
	for name, handler := range map[string]http.Handler{
		catalog.StreamableHTTP: streamable(newServer(), upstream.Legacy), catalog.SSE: oldSSE(newServer()),
	} {
		t.Run(name, func(t *testing.T) {
			issuer := accesstest.NewIssuer(t)
			listening := httptest.NewUnstartedServer(nil)
			at := "http://" + listening.Listener.Addr().String() + "/mcp"
			guarded := access.New(access.Options{
				Source: nobody{}, Resource: at,
				Issuers: []access.Issuer{{Name: "corp", URL: issuer.URL, Scopes: []access.ScopeRole{{Scope: "tools", Role: access.Owner}}}},
			})
			mux := http.NewServeMux()
			mux.Handle(guarded.MetadataPath(), guarded.MetadataHandler())
			mux.HandleFunc("/mcp", func(out http.ResponseWriter, r *http.Request) {
				var refused *access.RefusedError
				if _, err := guarded.Authenticate(r.Context(), r); errors.As(err, &refused) {
					out.Header().Set("WWW-Authenticate", refused.Challenge)
					http.Error(out, refused.Reason, refused.Status)
					return
				}
				handler.ServeHTTP(out, r)
			})
			listening.Config.Handler = mux
			listening.Start()
			t.Cleanup(func() {
				listening.CloseClientConnections()
				listening.Close()
			})

			spec := sandbox.Spec{Server: "tracker", Remote: &sandbox.Remote{URL: at, Transport: name, Addresses: []string{"127.0.0.1", "::1"}}}
			client, err := door.NewClient(*spec.Remote)
			if err != nil {
				t.Fatal(err)
			}
			defer client.CloseIdleConnections()
			book := &login.Book{Vault: &login.Vault{Dir: t.TempDir()}, Client: client}
			server := login.Server{Name: spec.Server, URL: at}
			runner := &remote.Runner{Logins: func(sandbox.Spec) (*login.Book, login.Server, error) { return book, server, nil }}

			p, err := runner.Start(t.Context(), spec)
			if err == nil {
				_, err = upstream.Connect(t.Context(), p, upstream.Options{Era: upstream.Legacy})
			}
			var wanted *login.LoginError
			if !errors.As(err, &wanted) || wanted.Hint() != "log in with: dockgate login tracker" {
				t.Fatalf("without a login: %v, want a *LoginError", err)
			}
			err = book.Login(t.Context(), server, func(ctx context.Context, address string) error {
				page, err := issuer.Consent(ctx, address)
				if err == nil && !strings.Contains(page, "You are logged in") {
					err = errors.New(page)
				}
				return err
			})
			if err != nil {
				t.Fatalf("Login() = %v", err)
			}
			if p, err = runner.Start(t.Context(), spec); err != nil {
				t.Fatal(err)
			}
			if got := call(t, converse(t, p, upstream.Options{Era: upstream.Legacy}), `{"name":"echo","arguments":{}}`, nil); got != "{}" {
				t.Errorf("a call with a login = %s, want {}", got)
			}
		})
	}
}
