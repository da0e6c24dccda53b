// Package access decides who may talk to the gateway over HTTP, and as whom.
//
// A request carries one bearer token in its Authorization header: one that
// this gateway made, or one that a configured issuer signed for this gateway.
// It refuses everything else, with the status and the WWW-Authenticate header
// that tell a client what it needs.
//
// It guarantees that a token is known by its digest only, once it was shown;
// that a revoked or expired one stops working within 250 ms in every gateway
// of the state folder; and that no error, log or later part of the gateway
// sees the token: [Authenticator.Authenticate] takes it off the request.
package access

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/dockgate/dockgate/internal/principal"
)

// A Source has the tokens that this gateway made.
type Source interface {
	// TokenRevision returns a number that changes whenever the tokens do.
	TokenRevision(ctx context.Context) (int64, error)
	// Tokens returns all of them.
	Tokens(ctx context.Context) ([]Token, error)
}

// Options are what an Authenticator needs.
type Options struct {
	// Source has this gateway's own tokens. It is required.
	Source Source
	// Resource is the URL of the gateway as its clients know it, for example
	// "https://tools.example.com/mcp". Tokens of issuers must be for it.
	Resource string
	// Issuers are those whose tokens are good here; see [Issuer.Check].
	Issuers []Issuer
	// Roles are those that callers may have: one with another is refused.
	Roles Roles
	// Current, if not nil, returns what takes the place of Roles: the roles of
	// now, where they can change.
	Current func() Roles
	// Client fetches the documents of issuers; nil is one that follows no
	// redirects and waits 10 s.
	Client *http.Client
	// Open lets in who brings no token, as [principal.Local]. See [MayOpen].
	Open bool
}

// An Authenticator lets callers in. Its methods may be called from several
// goroutines.
type Authenticator struct {
	opts    Options
	issuers []*issuer

	mu       sync.Mutex
	looked   time.Time // when the tokens were last known to be current
	revision int64
	tokens   []Token
	watches  map[*watch]struct{}
}

// New returns an Authenticator.
func New(o Options) *Authenticator {
	if o.Client == nil {
		o.Client = newClient()
	}
	a := &Authenticator{opts: o, watches: make(map[*watch]struct{})}
	for _, i := range o.Issuers {
		a.issuers = append(a.issuers, newIssuer(i, o.Resource, o.Client))
	}
	return a
}

// A Visitor is a caller who was let in.
type Visitor struct {
	Principal principal.Principal
	// Expires is when the credential ends; zero is never.
	Expires time.Time

	// digest is of the gateway's own token; zero if it was none.
	digest Digest
}

// Renewable reports whether the caller may come back as the same principal when
// the credential has expired: issuers give out others, for a short while each.
func (v Visitor) Renewable() bool { return v.digest == (Digest{}) }

// Authenticate lets the sender of a request in, and takes the token off the
// request, so that nothing behind can pass it on. Its errors are of type
// [*RefusedError], but for ctx's.
func (a *Authenticator) Authenticate(ctx context.Context, r *http.Request) (Visitor, error) {
	visitor, err := a.identify(ctx, r)
	if err != nil {
		return Visitor{}, err
	}
	var unknown *RoleError
	roles := a.opts.Roles
	if a.opts.Current != nil {
		roles = a.opts.Current()
	}
	if _, err := roles.Of(visitor.Principal); errors.As(err, &unknown) {
		return Visitor{}, a.refusal(cause{http.StatusForbidden, "insufficient_scope", "the caller has no role that is configured", unknown.Hint()}, "")
	}
	return visitor, nil
}

// identify says who sends a request.
func (a *Authenticator) identify(ctx context.Context, r *http.Request) (Visitor, error) {
	headers := r.Header.Values("Authorization")
	r.Header.Del("Authorization")
	if len(headers) == 0 {
		if a.opts.Open {
			return Visitor{Principal: principal.Local}, nil
		}
		return Visitor{}, a.refuse(noToken)
	}
	token, ok := bearer(headers)
	if !ok {
		return Visitor{}, a.refuse(malformed)
	}
	if len(a.issuers) > 0 && !strings.HasPrefix(token, tokenPrefix) {
		return a.signed(ctx, token)
	}
	return a.own(ctx, token)
}

// bearer returns the token of the one Authorization header (RFC 6750, 2.1).
func bearer(headers []string) (token string, ok bool) {
	if len(headers) != 1 || len(headers[0]) > maxHeader {
		return "", false
	}
	scheme, token, _ := strings.Cut(headers[0], " ")
	token = strings.TrimLeft(token, " ")
	return token, strings.EqualFold(scheme, "Bearer") && token != "" && !strings.ContainsAny(token, " \t,")
}

// maxHeader is how long an Authorization header may be.
const maxHeader = 16 << 10

// own lets the bearer of one of the gateway's own tokens in.
func (a *Authenticator) own(ctx context.Context, plain string) (Visitor, error) {
	tokens, err := a.current(ctx)
	if err != nil {
		return Visitor{}, err
	}
	token, ok := find(tokens, DigestOf(plain))
	switch {
	case !ok:
		return Visitor{}, a.refuse(unknownToken)
	case token.Expired(time.Now()):
		return Visitor{}, a.refuse(expiredToken)
	}
	return Visitor{
		Principal: principal.Principal{ID: token.Name, Role: token.Role}, Expires: token.Expires, digest: token.Digest,
	}, nil
}

// lookEvery is how old the knowledge of the tokens may be.
const lookEvery = 100 * time.Millisecond

// current returns the tokens as they were at most lookEvery ago. If they cannot
// be read nobody is let in.
func (a *Authenticator) current(ctx context.Context) ([]Token, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.looked.IsZero() && time.Since(a.looked) < lookEvery {
		return a.tokens, nil
	}
	began := time.Now()
	revision, err := a.opts.Source.TokenRevision(ctx)
	if err == nil && (a.looked.IsZero() || revision != a.revision) {
		// The revision is of before: what changes in between is seen next time.
		a.tokens, err = a.opts.Source.Tokens(ctx)
	}
	if err != nil {
		a.looked = time.Time{}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, &RefusedError{Status: http.StatusServiceUnavailable, Reason: "the gateway cannot read its tokens", cause: err}
	}
	a.looked, a.revision = began, revision
	return a.tokens, nil
}

// MayOpen reports whether a listener may let callers in without a token: only
// on a unix socket, or on an address that other machines do not reach.
// Network and address are those of [net.Addr].
func MayOpen(network, address string) bool {
	if network == "unix" {
		return true
	}
	at, err := netip.ParseAddrPort(address)
	return err == nil && at.Addr().Unmap().IsLoopback()
}
