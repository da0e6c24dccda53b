package login_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/dockgate/dockgate/internal/access"
	"github.com/dockgate/dockgate/internal/access/accesstest"
	"github.com/dockgate/dockgate/internal/login"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// nobody has made tokens of their own.
type nobody struct{}

func (nobody) TokenRevision(context.Context) (int64, error)   { return 1, nil }
func (nobody) Tokens(context.Context) ([]access.Token, error) { return nil, nil }

// A world is an issuer, an MCP server that wants its tokens, and a book of logins.
type world struct {
	t      *testing.T
	issuer *accesstest.Issuer
	server login.Server
	book   *login.Book

	mu   sync.Mutex
	seen map[string]bool // Authorization headers; false is refused from now on
}

// refuse has the server take no token any more that it has seen.
func (w *world) refuse() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for header := range w.seen {
		w.seen[header] = false
	}
}

// takes reports whether the server takes a header, as far as refuse goes.
func (w *world) takes(header string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	taken, known := w.seen[header]
	if !known {
		w.seen[header] = true
	}
	return taken || !known
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, issuer: accesstest.NewIssuer(t), seen: map[string]bool{}}
	listening := httptest.NewUnstartedServer(nil)
	w.server = login.Server{Name: "tracker", URL: "http://" + listening.Listener.Addr().String() + "/mcp"}
	door := access.New(access.Options{
		Source: nobody{}, Resource: w.server.URL,
		Issuers: []access.Issuer{{Name: "corp", URL: w.issuer.URL, Scopes: []access.ScopeRole{{Scope: "tools", Role: access.Owner}}}},
	})
	tools := mcp.NewServer(&mcp.Implementation{Name: "tracker", Version: "1"}, nil)
	tools.AddTool(&mcp.Tool{Name: "whoami", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "somebody"}}}, nil
	})
	inside := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return tools }, &mcp.StreamableHTTPOptions{Stateless: true})
	mux := http.NewServeMux()
	mux.Handle(door.MetadataPath(), door.MetadataHandler())
	mux.HandleFunc("/mcp", func(out http.ResponseWriter, r *http.Request) {
		var refused *access.RefusedError
		if !w.takes(r.Header.Get("Authorization")) {
			r.Header.Del("Authorization")
		}
		if _, err := door.Authenticate(r.Context(), r); errors.As(err, &refused) {
			out.Header().Set("WWW-Authenticate", refused.Challenge)
			http.Error(out, refused.Reason, refused.Status)
			return
		}
		inside.ServeHTTP(out, r)
	})
	listening.Config.Handler = mux
	listening.Start()
	t.Cleanup(listening.Close)
	w.book = w.open(filepath.Join(t.TempDir(), "logins"))
	return w
}

// open opens a book, as each process does.
func (w *world) open(dir string) *login.Book {
	transport := &http.Transport{}
	w.t.Cleanup(transport.CloseIdleConnections)
	return &login.Book{Vault: &login.Vault{Dir: dir}, Client: &http.Client{Transport: transport, Timeout: 30 * time.Second}}
}

func (w *world) logIn() {
	w.t.Helper()
	err := w.book.Login(w.t.Context(), w.server, func(ctx context.Context, address string) error {
		page, err := w.issuer.Consent(ctx, address)
		if err == nil && !strings.Contains(page, "You are logged in") {
			err = errors.New(page)
		}
		return err
	})
	check(w.t, err)
}

// use calls the server with the kept login.
func (w *world) use(book *login.Book) error {
	transport := &mcp.StreamableClientTransport{Endpoint: w.server.URL, HTTPClient: book.Client, OAuthHandler: book.Bearer(w.server), MaxRetries: -1}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "gateway", Version: "1"}, nil).Connect(w.t.Context(), transport, nil)
	if err != nil {
		return err
	}
	_, err = session.CallTool(w.t.Context(), &mcp.CallToolParams{Name: "whoami"})
	return errors.Join(err, session.Close())
}

// The scopes of an entry are asked for, and else those that the server names.
func TestScopes(t *testing.T) {
	errEnough := errors.New("the person goes away")
	for _, tt := range []struct{ scopes, want []string }{{nil, []string{"tools"}}, {[]string{"read", "list"}, []string{"list", "read"}}} {
		w := newWorld(t)
		w.server.Scopes = tt.scopes
		var asked []string
		err := w.book.Login(t.Context(), w.server, func(_ context.Context, address string) error {
			u, err := url.Parse(address)
			check(t, err)
			asked = slices.DeleteFunc(strings.Fields(u.Query().Get("scope")), func(scope string) bool { return scope == "offline_access" })
			slices.Sort(asked) // their order says nothing (RFC 6749, 3.3)
			return errEnough
		})
		if !errors.Is(err, errEnough) || !slices.Equal(asked, tt.want) {
			t.Errorf("Login for the scopes %q asks for %q, %v, want %q", tt.scopes, asked, err, tt.want)
		}
	}
}

// A person logs in once; then the gateway calls, refreshes the token when it
// expires or is not taken any more, and says so when nothing helps.
func TestLogin(t *testing.T) {
	w := newWorld(t)
	var wanted *login.LoginError
	if err := w.use(w.book); !errors.As(err, &wanted) || wanted.Server != "tracker" || !strings.HasSuffix(wanted.Hint(), "dockgate login tracker") {
		t.Fatalf("a call without a login = %v, want a LoginError", err)
	}
	w.issuer.Lasts(5 * time.Second) // which is too little to begin anything with
	w.logIn()
	w.issuer.Lasts(time.Hour)
	check(t, w.use(w.book))
	if got := w.issuer.Refreshed(); got != 1 {
		t.Errorf("an expired token was refreshed %d times, want once", got)
	}
	check(t, w.use(w.book))
	w.refuse()
	check(t, w.use(w.book))
	if got := w.issuer.Refreshed(); got != 2 {
		t.Errorf("a token that is not taken any more was refreshed %d times, want once more than before: 2", got)
	}
	// It is kept for the next process, and for this URL alone.
	check(t, w.use(w.open(w.book.Vault.Dir)))
	other := login.Server{Name: w.server.Name, URL: strings.Replace(w.server.URL, "127.0.0.1", "localhost", 1)}
	if source, err := w.book.Bearer(other).TokenSource(t.Context()); err != nil || source != nil {
		t.Errorf("TokenSource for another URL = %v, %v, want none", source, err)
	}
	w.refuse()
	w.issuer.Revoke()
	if err := w.use(w.book); !errors.As(err, &wanted) || wanted.Err == nil {
		t.Errorf("a call when the login is over = %v, want a LoginError with the reason", err)
	}
	check(t, w.book.Logout(t.Context(), w.server))
	if err := w.book.Logout(t.Context(), w.server); !errors.Is(err, login.ErrNone) {
		t.Errorf("Logout again = %v, want ErrNone", err)
	}
	if err := w.use(w.book); !errors.As(err, &wanted) || wanted.Err != nil {
		t.Errorf("a call after the logout = %v, want a LoginError", err)
	}
}

// Of several processes one refreshes, because an issuer ends a login whose
// refresh token comes twice.
func TestRefreshOnce(t *testing.T) {
	w := newWorld(t)
	w.issuer.Lasts(5 * time.Second) // which is too little to begin anything with
	w.logIn()
	w.issuer.Lasts(time.Hour)
	var together sync.WaitGroup
	failures := make(chan error, 16)
	for range 4 {
		bearer := w.open(w.book.Vault.Dir).Bearer(w.server)
		for range 4 {
			together.Go(func() {
				source, err := bearer.TokenSource(t.Context())
				if err == nil && source == nil {
					err = errors.New("no token")
				}
				failures <- err
			})
		}
	}
	together.Wait()
	close(failures)
	for err := range failures {
		check(t, err)
	}
	if got := w.issuer.Refreshed(); got != 1 {
		t.Errorf("the token was refreshed %d times, want once", got)
	}
}

// A refresh that fails for now is tried again, and not taken for the end.
func TestRefreshLater(t *testing.T) {
	w := newWorld(t)
	w.issuer.Lasts(5 * time.Second) // which is too little to begin anything with
	w.logIn()
	w.issuer.Break()
	bearer := w.book.Bearer(w.server)
	var wanted *login.LoginError
	if _, err := bearer.TokenSource(t.Context()); err == nil || errors.As(err, &wanted) {
		t.Errorf("TokenSource while the issuer is down = %v, want an error, but no LoginError", err)
	}
	w.issuer.Mend()
	if source, err := bearer.TokenSource(t.Context()); err != nil || source == nil {
		t.Errorf("TokenSource once the issuer is back = %v, %v", source, err)
	}
}

func TestLoginRefused(t *testing.T) {
	w := newWorld(t)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	browser := &http.Client{Transport: transport}
	back := func(ctx context.Context, address string, change func(url.Values)) (int, error) {
		asked, err := url.Parse(address)
		if err != nil {
			return 0, err
		}
		values := url.Values{"state": {asked.Query().Get("state")}}
		change(values)
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, asked.Query().Get("redirect_uri")+"?"+values.Encode(), http.NoBody)
		if err != nil {
			return 0, err
		}
		answer, err := browser.Do(r)
		if err != nil {
			return 0, err
		}
		return answer.StatusCode, answer.Body.Close()
	}
	denied := func(v url.Values) { v.Set("error", "access_denied"); v.Set("error_description", "not today") }
	err := w.book.Login(t.Context(), w.server, func(ctx context.Context, address string) error {
		// Whoever does not know the state is not heard.
		status, err := back(ctx, address, func(v url.Values) { denied(v); v.Set("state", "guess") })
		if status != http.StatusBadRequest {
			t.Errorf("an answer with another state = %d, want 400", status)
		}
		_, again := back(ctx, address, denied)
		return errors.Join(err, again)
	})
	var consent *login.ConsentError
	if !errors.As(err, &consent) || consent.Code != "access_denied" || !strings.Contains(err.Error(), "not today") {
		t.Errorf("Login that the person denied = %v, want a ConsentError", err)
	}
	err = w.book.Login(t.Context(), w.server, func(ctx context.Context, address string) error {
		_, err := back(ctx, address, func(v url.Values) { v.Set("code", "forged") })
		return err
	})
	if err == nil {
		t.Error("Login with a forged code = nil")
	}
	ctx, cancel := context.WithCancel(t.Context())
	err = w.book.Login(ctx, w.server, func(context.Context, string) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Login that was given up = %v, want Canceled", err)
	}
	if source, err := w.book.Bearer(w.server).TokenSource(t.Context()); err != nil || source != nil {
		t.Errorf("TokenSource after failed logins = %v, %v, want none", source, err)
	}
	free := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) { _, _ = out.Write([]byte("{}")) }))
	defer free.Close()
	var needless *login.NeedlessError
	if err := w.book.Login(t.Context(), login.Server{Name: "free", URL: free.URL}, nil); !errors.As(err, &needless) {
		t.Errorf("Login to a server that wants none = %v, want a NeedlessError", err)
	}
}

// Nothing of a login is in any file as it is, and files are their user's alone.
func TestKeptSealed(t *testing.T) {
	w := newWorld(t)
	w.logIn()
	source, err := w.book.Bearer(w.server).TokenSource(t.Context())
	check(t, err)
	token, err := source.Token()
	check(t, err)
	files := 0
	check(t, filepath.WalkDir(w.book.Vault.Dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		files++
		info, err := entry.Info()
		if err == nil && info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, want 0600", path, info.Mode())
		}
		content, readErr := os.ReadFile(path)
		for _, part := range []string{token.AccessToken, "access_token", w.issuer.URL} {
			if strings.Contains(string(content), part) {
				t.Errorf("%s holds %q", path, part[:12])
			}
		}
		return errors.Join(err, readErr)
	}))
	if files < 2 {
		t.Errorf("%d files, want a key and a login", files)
	}
}
