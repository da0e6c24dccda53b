package access

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/dockgate/dockgate/internal/principal"
)

// An Issuer signs tokens for callers of this gateway: an OpenID provider, or
// any OAuth 2.1 authorization server whose access tokens are signed JWTs (RFC
// 9068).
type Issuer struct {
	// Name stands in front of the IDs of its callers, as "name:subject".
	Name string
	// URL is the issuer's identifier, exactly as its tokens have it.
	URL string
	// Audience is what its tokens must be for; empty is the gateway's Resource.
	Audience string
	// Scopes say which role comes with which scope, those with the most rights
	// first: of the scopes that a token has the first counts. A token with none
	// of them is refused, and the last is what its bearer is told to ask for.
	// If there are no Scopes every token is good, with the default role.
	Scopes []ScopeRole
}

// A ScopeRole is the role of those whose token has a scope.
type ScopeRole struct{ Scope, Role string }

// Check reports what is wrong with an issuer's description.
func (i Issuer) Check() error {
	if err := CheckName(i.Name); err != nil {
		return fmt.Errorf("name: %w", err)
	}
	if err := CheckURL(i.URL); err != nil {
		return fmt.Errorf("url: %w", err)
	}
	for _, one := range i.Scopes {
		// RFC 6749, section 3.3.
		bad := func(r rune) bool { return r < '!' || r > '~' || r == '"' || r == '\\' }
		if one.Scope == "" || strings.ContainsFunc(one.Scope, bad) {
			return fmt.Errorf("scopes: %q is no scope", one.Scope)
		}
		if err := CheckName(one.Role); err != nil {
			return fmt.Errorf("scopes: role of %s: %w", one.Scope, err)
		}
	}
	return nil
}

// CheckURL reports what is wrong with the URL of an issuer or of the gateway
// itself: it is https, or http on a loopback address, and has no query, no
// fragment and no user.
func CheckURL(text string) error {
	at, err := url.Parse(text)
	switch {
	case err != nil || at.Host == "" || at.Opaque != "":
		return fmt.Errorf("%q is no absolute URL", text)
	case at.Scheme != "https" && (at.Scheme != "http" || !isLoopback(at.Hostname())):
		return fmt.Errorf("%q is neither https nor on a loopback address", text)
	case at.RawQuery != "" || at.ForceQuery || at.Fragment != "" || at.User != nil:
		return fmt.Errorf("%q has a query, a fragment or a user", text)
	case strings.ContainsAny(text, "\"\\ \t\r\n#"):
		return fmt.Errorf("%q has a character that no URL has", text)
	}
	return nil
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	at, err := netip.ParseAddr(host)
	return err == nil && at.Unmap().IsLoopback()
}

// Keys fetches an issuer's keys, as an authenticator does, and returns how many
// there are. The error is an [*UnreachableError].
func (i Issuer) Keys(ctx context.Context) (int, error) {
	client := newClient()
	defer client.CloseIdleConnections()
	set, err := newKeys(i.URL, client).download(ctx)
	if err != nil {
		return 0, &UnreachableError{Issuer: i.URL, Err: err}
	}
	return len(set), nil
}

// An issuer is an Issuer with its keys.
type issuer struct {
	Issuer
	keys *keys
}

func newIssuer(i Issuer, resource string, client *http.Client) *issuer {
	i.Audience = cmp.Or(i.Audience, resource)
	return &issuer{Issuer: i, keys: newKeys(i.URL, client)}
}

// algorithms are those that tokens may be signed with. None is symmetric: the
// gateway shares no key with an issuer.
func algorithms() []jose.SignatureAlgorithm {
	return []jose.SignatureAlgorithm{
		jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
	}
}

// skew is how far the clocks of issuer and gateway may be apart.
const skew = 30 * time.Second

// claims are the parts of an access token that count here.
type claims struct {
	jwt.Claims
	// Scope is a list of words in one text (RFC 9068); some issuers write an
	// array, or name it scp.
	Scope words `json:"scope"`
	SCP   words `json:"scp"`
	// Confirmation binds a token to a key (RFC 7800), whose proof is not asked
	// for here: as a bearer token it is not good.
	Confirmation json.RawMessage `json:"cnf"`
}

// words are a JSON array of texts, or one text of words.
type words []string

// UnmarshalJSON reads either form.
func (w *words) UnmarshalJSON(data []byte) error {
	var list []string
	if err := json.Unmarshal(data, &list); err == nil {
		*w = list
		return nil
	}
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	*w = strings.Fields(text)
	return nil
}

var errNotJWT = errors.New("is no signed token")

// parse reads a signed token without believing it.
func parse(plain string) (*jwt.JSONWebToken, claims, error) {
	if strings.Count(plain, ".") != 2 {
		return nil, claims{}, errNotJWT
	}
	token, err := jwt.ParseSigned(plain, algorithms())
	if err != nil {
		return nil, claims{}, errNotJWT // the library's error may quote it
	}
	if len(token.Headers) != 1 || !isAccessToken(token.Headers[0]) {
		return nil, claims{}, errNotJWT
	}
	var said claims
	if err := token.UnsafeClaimsWithoutVerification(&said); err != nil {
		return nil, claims{}, errNotJWT
	}
	return token, said, nil
}

// isAccessToken tells an access token from what else an issuer signs, such as
// logout tokens and proofs (RFC 9068, section 4). Many issuers say JWT, or
// nothing.
func isAccessToken(header jose.Header) bool {
	kind, _ := header.ExtraHeaders[jose.HeaderType].(string)
	kind = strings.TrimPrefix(strings.ToLower(kind), "application/")
	return kind == "" || kind == "jwt" || kind == "at+jwt"
}

// signed lets the bearer of an issuer's token in.
func (a *Authenticator) signed(ctx context.Context, plain string) (Visitor, error) {
	token, said, err := parse(plain)
	if err != nil {
		return Visitor{}, a.refuse(unknownToken)
	}
	at := slices.IndexFunc(a.issuers, func(i *issuer) bool { return i.URL == said.Issuer })
	if at < 0 {
		return Visitor{}, a.refuse(otherIssuer)
	}
	by := a.issuers[at]
	// What is not for this gateway costs no look for keys.
	if refusal, ok := by.judge(said, time.Now()); !ok {
		return Visitor{}, a.refuse(refusal)
	}
	var proven claims
	if err := by.keys.verify(ctx, token, &proven); err != nil {
		return Visitor{}, a.unverified(ctx, err)
	}
	if refusal, ok := by.judge(proven, time.Now()); !ok {
		return Visitor{}, a.refuse(refusal)
	}
	role, ok := by.role(append(proven.Scope, proven.SCP...))
	if !ok {
		return Visitor{}, a.refuseScope(by)
	}
	return Visitor{
		Principal: principal.Principal{ID: by.Name + ":" + url.PathEscape(proven.Subject), Role: role},
		Expires:   proven.Expiry.Time().Add(skew),
	}, nil
}

// unverified is why a token could not be verified.
func (a *Authenticator) unverified(ctx context.Context, err error) error {
	var unreachable *UnreachableError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &unreachable):
		return &RefusedError{
			Status: http.StatusServiceUnavailable, Reason: "the token cannot be checked now", cause: err,
			hint: "look at the issuer: " + unreachable.Issuer,
		}
	default:
		return a.refuse(badSignature)
	}
}

// maxSubject is how long a subject may be (OpenID Connect Core, section 2).
const maxSubject = 255

// judge says what is wrong with a token's claims.
func (i *issuer) judge(c claims, now time.Time) (refusal cause, ok bool) {
	switch err := c.ValidateWithLeeway(jwt.Expected{Issuer: i.URL, Time: now}, skew); {
	case errors.Is(err, jwt.ErrExpired):
		return expiredToken, false
	case err != nil:
		return earlyToken, false
	case c.Expiry == nil:
		return endlessToken, false
	case !oauthex.MatchesResource(c.Audience, i.Audience):
		return otherAudience, false
	case c.Subject == "" || len(c.Subject) > maxSubject:
		return noSubject, false
	case len(c.Confirmation) > 0:
		return boundToken, false
	}
	return cause{}, true
}

// role returns the role that comes with scopes.
func (i *issuer) role(scopes []string) (role string, ok bool) {
	for _, one := range i.Scopes {
		if slices.Contains(scopes, one.Scope) {
			return one.Role, true
		}
	}
	return "", len(i.Scopes) == 0
}

// least is the scope with the fewest rights; empty if none is needed.
func (i *issuer) least() string {
	if len(i.Scopes) == 0 {
		return ""
	}
	return i.Scopes[len(i.Scopes)-1].Scope
}

// newClient returns what fetches the documents of issuers. It follows no
// redirects: an issuer's documents are where it says they are.
func newClient() *http.Client {
	return &http.Client{
		Timeout: 10 * time.Second,
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
			TLSHandshakeTimeout: 5 * time.Second, ResponseHeaderTimeout: 5 * time.Second, IdleConnTimeout: time.Minute,
			ForceAttemptHTTP2: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
