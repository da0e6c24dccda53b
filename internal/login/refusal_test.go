package login_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/dockgate/dockgate/internal/login"
	"github.com/dockgate/dockgate/internal/secret"
)

// errSeen ends a login where the browser would open.
var errSeen = errors.New("seen")

// asked returns what a login asks the issuer for.
func asked(t *testing.T, book *login.Book, server login.Server) url.Values {
	t.Helper()
	var values url.Values
	err := book.Login(t.Context(), server, func(_ context.Context, address string) error {
		at, err := url.Parse(address)
		values = at.Query()
		return errors.Join(err, errSeen)
	})
	if !errors.Is(err, errSeen) {
		t.Fatalf("Login = %v, want it to open the browser", err)
	}
	return values
}

// refuse has a bearer see a server's refusal of what it sent last.
func refuse(t *testing.T, bearer login.Handler, status int, challenge string) error {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mcp", nil)
	source, err := bearer.TokenSource(t.Context())
	check(t, err)
	if source != nil {
		token, err := source.Token()
		check(t, err)
		token.SetAuthHeader(request)
	}
	answer := &http.Response{StatusCode: status, Header: http.Header{}, Body: http.NoBody}
	if challenge != "" {
		answer.Header.Set("WWW-Authenticate", challenge)
	}
	return bearer.Authorize(t.Context(), request, answer)
}

// A request that needs more than the login has makes the next login ask for it,
// in whichever process, on top of what the person had granted.
func TestStepUp(t *testing.T) {
	w := newWorld(t)
	first := strings.Fields(asked(t, w.book, w.server).Get("scope"))
	w.logIn()
	bearer := w.book.Bearer(w.server)
	if err := refuse(t, bearer, http.StatusForbidden, ""); err != nil {
		t.Errorf("Authorize(403) = %v, want nil: it is the server's answer", err)
	}
	err := refuse(t, bearer, http.StatusForbidden, `Bearer error="insufficient_scope", scope="tools:write"`)
	var wanted *login.LoginError
	if !errors.As(err, &wanted) || !wanted.Lacking || wanted.Scope != "tools:write" || !strings.Contains(err.Error(), `"tools:write"`) {
		t.Errorf("Authorize(403 insufficient_scope) = %v, want a LoginError with the scope", err)
	}
	got := strings.Fields(asked(t, w.open(w.book.Vault.Dir), w.server).Get("scope"))
	for _, scope := range append(first, "tools:write") {
		if !slices.Contains(got, scope) {
			t.Errorf("the next login asks for %q, want %q too", got, scope)
		}
	}
	// The login after that finds out anew what the server wants.
	if got := strings.Fields(asked(t, w.book, w.server).Get("scope")); slices.Contains(got, "tools:write") {
		t.Errorf("the login after that asks for %q, want what a first one asks for", got)
	}
	if err := refuse(t, bearer, http.StatusForbidden, `Bearer error="insufficient_scope"`); !errors.As(err, &wanted) || wanted.Hint() == "" {
		t.Errorf("Authorize(403 without a scope) = %v, want a LoginError", err)
	}
}

// What a server asks for on a later request counts, where its first answers
// without a login; and what it said of another URL does not.
func TestLateChallenge(t *testing.T) {
	w := newWorld(t)
	open := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) { _, _ = out.Write([]byte("{}")) }))
	t.Cleanup(open.Close)
	server := login.Server{Name: "open", URL: open.URL}
	var needless *login.NeedlessError
	if err := w.book.Login(t.Context(), server, nil); !errors.As(err, &needless) {
		t.Errorf("Login = %v, want a NeedlessError", err)
	}
	challenge := `Bearer scope="late", resource_metadata="` + open.URL + `/nowhere"`
	var wanted *login.LoginError
	if err := refuse(t, w.book.Bearer(server), http.StatusUnauthorized, challenge); !errors.As(err, &wanted) {
		t.Errorf("Authorize(401) = %v, want a LoginError", err)
	}
	var again *login.NeedlessError
	if err := w.book.Login(t.Context(), server, nil); err == nil || errors.As(err, &again) {
		t.Errorf("Login after a refusal = %v, want it to go to the issuer, which is not there", err)
	}
	check(t, ignore[*login.LoginError](refuse(t, w.book.Bearer(server), http.StatusUnauthorized, challenge)))
	moved := login.Server{Name: "open", URL: open.URL + "/moved"}
	if err := w.book.Login(t.Context(), moved, nil); !errors.As(err, &needless) {
		t.Errorf("Login to another URL = %v, want a NeedlessError", err)
	}
}

// ignore returns nil for an error of a kind.
func ignore[E error](err error) error {
	var of E
	if errors.As(err, &of) {
		return nil
	}
	return err
}

// A token that was refreshed and is not taken all the same is not refreshed
// for ever.
func TestRefreshedInVain(t *testing.T) {
	w := newWorld(t)
	w.logIn()
	bearer := w.book.Bearer(w.server)
	if err := refuse(t, bearer, http.StatusUnauthorized, "Bearer"); err != nil {
		t.Errorf("Authorize(401) = %v, want a refreshed token", err)
	}
	var wanted *login.LoginError
	if err := refuse(t, bearer, http.StatusUnauthorized, "Bearer"); !errors.As(err, &wanted) || wanted.Err == nil {
		t.Errorf("Authorize(401) of a refreshed token = %v, want a LoginError with the reason", err)
	}
	if got := w.issuer.Refreshed(); got != 1 {
		t.Errorf("%d refreshes, want 1", got)
	}
}

// A server of the modern era knows no initialize.
func TestModernChallenge(t *testing.T) {
	tests := []struct {
		status int // of the answer to server/discover
		want   string
	}{
		{http.StatusOK, `server "new" asks for no login`},
		{http.StatusBadRequest, "the server answers 400"},
		{http.StatusUnauthorized, "no configured client registration"},
	}
	for _, tt := range tests {
		mux := http.NewServeMux()
		place := httptest.NewServer(mux)
		mux.HandleFunc("POST /mcp", func(out http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil || !strings.Contains(string(body), `"server/discover"`) || r.Header.Get("Mcp-Protocol-Version") != "2026-07-28" {
				http.Error(out, "what?", http.StatusBadRequest)
				return
			}
			out.WriteHeader(tt.status)
		})
		mux.HandleFunc("GET /.well-known/oauth-authorization-server", func(out http.ResponseWriter, _ *http.Request) {
			out.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(out, `{"issuer":"`+place.URL+`","authorization_endpoint":"`+place.URL+`/a","token_endpoint":"`+place.URL+`/t","response_types_supported":["code"],"code_challenge_methods_supported":["S256"]}`)
		})
		w := newWorld(t)
		err := w.book.Login(t.Context(), login.Server{Name: "new", URL: place.URL + "/mcp"}, nil)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Login with %d for server/discover = %v, want %q in it", tt.status, err, tt.want)
		}
		w.book.Client.CloseIdleConnections()
		place.Close()
	}
}

// An issuer may know the gateway already.
func TestRegistration(t *testing.T) {
	w := newWorld(t)
	if id := asked(t, w.book, w.server).Get("client_id"); id == "" || id == "known" {
		t.Errorf("a login asks as %q, want an id that the issuer gave", id)
	}
	w.book.Registration = login.Registration{ID: "known", Secret: secret.NewValue("s")}
	if id := asked(t, w.book, w.server).Get("client_id"); id != "known" {
		t.Errorf("a login asks as %q, want known", id)
	}
	// This issuer reads no documents.
	w.book.Registration = login.Registration{ID: "https://client.example.com/metadata.json"}
	if id := asked(t, w.book, w.server).Get("client_id"); id == "" || strings.HasPrefix(id, "https://") {
		t.Errorf("a login asks as %q, want an id that the issuer gave", id)
	}
}
