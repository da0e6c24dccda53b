package login

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"golang.org/x/oauth2"
)

// A LoginError is a server that wants a login that there is not, or is over.
type LoginError struct {
	Server string
	// Err is why a login that there was is over.
	Err error
	// Lacking says that the login is good, but not for this request: the server
	// wants one with Scope, which it may not name.
	Lacking bool
	Scope   string
}

// Error names the server.
func (e *LoginError) Error() string {
	switch {
	case e.Scope != "":
		return fmt.Sprintf("server %q wants a login with the scope %q", e.Server, e.Scope)
	case e.Lacking:
		return fmt.Sprintf("server %q wants a login with more rights", e.Server)
	case e.Err != nil:
		return fmt.Sprintf("the login to server %q is over: %v", e.Server, e.Err)
	}
	return fmt.Sprintf("server %q wants a login", e.Server)
}

// Unwrap returns the cause, if there is one.
func (e *LoginError) Unwrap() error { return e.Err }

// Code says what kind of failure it is.
func (e *LoginError) Code() string { return "LOGIN_REQUIRED" }

// Hint says how to log in.
func (e *LoginError) Hint() string { return "log in with: dockgate login " + e.Server }

// A Handler gives requests their tokens.
type Handler = auth.OAuthHandler

// Bearer returns what gives the requests to a server their tokens: those of the
// kept login, refreshed when they expire. It asks nobody: a server that wants
// another login is a [*LoginError]. Someone may log in meanwhile, in another
// process.
func (b *Book) Bearer(server Server) Handler {
	return &bearer{book: b, server: server}
}

// A bearer is an [auth.OAuthHandler].
type bearer struct {
	book   *Book
	server Server

	mu   sync.Mutex
	kept session
	ok   bool
	// fresh is the token that was got, at a time, in place of one that the server
	// did not take. If it does not take this one either, no other will help.
	fresh string
	since time.Time
}

// settling is how long a token is fresh.
const settling = time.Minute

// TokenSource implements [auth.OAuthHandler].
func (b *bearer) TokenSource(ctx context.Context) (oauth2.TokenSource, error) {
	token, err := b.token(ctx)
	if err != nil || token == nil {
		return nil, err
	}
	return oauth2.StaticTokenSource(token), nil
}

// token returns a token that is good by the clock, or nil if there is no login.
func (b *bearer) token(ctx context.Context) (*oauth2.Token, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ok && b.kept.token().Valid() {
		return b.kept.token(), nil
	}
	if err := b.look(); err != nil || !b.ok {
		return nil, err
	}
	if !b.kept.token().Valid() && b.kept.Refresh != "" {
		if err := b.refresh(ctx, b.kept.Access); err != nil {
			return nil, err
		}
	}
	return b.kept.token(), nil
}

// look reads the login that is kept now. b.mu is held.
func (b *bearer) look() (err error) {
	b.kept, b.ok, err = b.book.load(b.server)
	return err
}

// refresh gets a token in place of one that is over, unless another process has
// done so. b.mu is held.
func (b *bearer) refresh(ctx context.Context, over string) (err error) {
	unlock, err := b.book.Vault.Lock(ctx, b.server.Name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if err := b.look(); err != nil || !b.ok || b.kept.Access != over {
		return err
	}
	// What the issuer gave is kept, even if nobody waits for it any more.
	ctx = context.WithValue(context.WithoutCancel(ctx), oauth2.HTTPClient, b.book.Client)
	old := b.kept.token()
	old.AccessToken = "" // so that it is not taken for good
	token, err := b.kept.config().TokenSource(ctx, old).Token()
	var answer *oauth2.RetrieveError
	switch {
	case errors.As(err, &answer) && answer.ErrorCode == "invalid_grant":
		return &LoginError{Server: b.server.Name, Err: errors.New("its issuer takes it no more")}
	case errors.As(err, &answer): // whose text has the whole answer of the issuer
		return fmt.Errorf("refresh the login to %q: the issuer answers %s", b.server.Name, answer.Response.Status)
	case err != nil:
		return fmt.Errorf("refresh the login to %q: %w", b.server.Name, err)
	}
	b.kept = b.kept.with(token)
	return b.book.save(ctx, b.server, b.kept)
}

// Authorize implements [auth.OAuthHandler]: it is called when the server does
// not take the token, or wants one.
func (b *bearer) Authorize(ctx context.Context, sent *http.Request, answer *http.Response) error {
	_, _ = io.CopyN(io.Discard, answer.Body, 1<<16) //nolint:errcheck // so that the connection is used again
	if err := answer.Body.Close(); err != nil {
		return err
	}
	scope, lacks := lacking(answer)
	if answer.StatusCode == http.StatusForbidden && !lacks {
		return nil // it is the server's answer
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	_, over, _ := strings.Cut(sent.Header.Get("Authorization"), " ")
	if err := b.look(); err != nil {
		return err
	}
	if b.ok && b.kept.Access != over {
		return nil // somebody has logged in, or refreshed it
	}
	wanted := &LoginError{Server: b.server.Name}
	switch {
	case !b.ok:
	case lacks:
		wanted.Lacking, wanted.Scope = true, scope
	case b.kept.Refresh == "" || over == b.fresh && time.Since(b.since) < settling:
		wanted.Err = errors.New("the server takes the token no more")
	default:
		err := b.refresh(ctx, over)
		if err == nil {
			b.fresh, b.since = b.kept.Access, time.Now()
		}
		if !errors.As(err, &wanted) {
			return err
		}
	}
	return errors.Join(wanted, b.book.note(b.server, answer))
}
