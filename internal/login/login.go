// Package login is how the gateway itself logs in to servers that somebody else
// runs, as an OAuth 2.1 client: a person consents once in a browser, and the
// tokens that this gives are kept and refreshed.
//
// It decides where a token may go: to the URL for which the person logged in,
// and to no other. It refuses to open a browser by itself when no person asked
// for it: without a login, a request fails with how to log in.
//
// It guarantees that tokens and client secrets are kept encrypted and printed
// nowhere, and that of several gateways one refreshes a token and the others
// take what it got: issuers end a login whose refresh token is used twice.
//
// The protocol is the SDK's: discovery, dynamic registration, PKCE, state and
// issuer checks.
package login

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"github.com/dockgate/dockgate/internal/secret"
)

// A Server is a remote server to log in to.
type Server struct {
	// Name is what the login is kept under.
	Name string
	// URL is where its tokens may go.
	URL string
	// Scopes are asked for in place of those that the server names; none are
	// those that it names.
	Scopes []string
}

// A Book keeps logins.
type Book struct {
	Vault *Vault
	// Client makes the requests to servers and issuers; it is required, and
	// should refuse addresses that nobody approved.
	Client *http.Client
	// Registration is how issuers know this gateway, for new logins.
	Registration Registration
}

// A Registration is how an issuer knows this gateway. The zero value is one that
// it asks the issuer for (RFC 7591).
type Registration struct {
	// ID is a client id that the issuer has given, or the https URL of a document
	// that describes the client, for issuers which read those.
	ID string
	// Secret belongs to an ID that the issuer has given; it may have none.
	Secret secret.Value
}

// apply puts a registration into the configuration of a login. A document is
// for issuers that read it; with others the gateway registers itself.
func (r Registration) apply(config *auth.AuthorizationCodeHandlerConfig) {
	switch {
	case strings.HasPrefix(r.ID, "https://") && !r.Secret.Set():
		config.ClientIDMetadataDocumentConfig = &auth.ClientIDMetadataDocumentConfig{URL: r.ID}
	case r.ID != "":
		config.PreregisteredClient = &oauthex.ClientCredentials{ClientID: r.ID}
		if r.Secret.Set() {
			config.PreregisteredClient.ClientSecretAuth = &oauthex.ClientSecretAuth{ClientSecret: r.Secret.Reveal()}
		}
	}
}

// A session is a login as it is kept.
type session struct {
	URL          string           `json:"url"`
	ClientID     string           `json:"client_id"`
	ClientSecret string           `json:"client_secret,omitempty"`
	TokenURL     string           `json:"token_url"`
	AuthStyle    oauth2.AuthStyle `json:"auth_style"`
	Scopes       []string         `json:"scopes,omitempty"`
	Access       string           `json:"access_token"`
	Refresh      string           `json:"refresh_token,omitempty"`
	Type         string           `json:"token_type,omitempty"`
	Expiry       time.Time        `json:"expiry,omitzero"`
}

func newSession(server Server, config *oauth2.Config, token *oauth2.Token) session {
	s := session{
		URL: server.URL, ClientID: config.ClientID, ClientSecret: config.ClientSecret,
		TokenURL: config.Endpoint.TokenURL, AuthStyle: config.Endpoint.AuthStyle, Scopes: config.Scopes,
	}
	return s.with(token)
}

// with returns the session with another token. An issuer that sends no new
// refresh token means the old one to go on (RFC 6749, section 6).
func (s session) with(token *oauth2.Token) session {
	s.Access, s.Type, s.Expiry = token.AccessToken, token.TokenType, token.Expiry
	if token.RefreshToken != "" {
		s.Refresh = token.RefreshToken
	}
	return s
}

func (s session) token() *oauth2.Token {
	return &oauth2.Token{AccessToken: s.Access, RefreshToken: s.Refresh, TokenType: s.Type, Expiry: s.Expiry}
}

func (s session) config() *oauth2.Config {
	return &oauth2.Config{
		ClientID: s.ClientID, ClientSecret: s.ClientSecret, Scopes: s.Scopes,
		Endpoint: oauth2.Endpoint{TokenURL: s.TokenURL, AuthStyle: s.AuthStyle},
	}
}

// load returns the login for a server; ok is false if there is none for its URL.
func (b *Book) load(server Server) (found session, ok bool, err error) {
	kept, err := b.Vault.Get(server.Name)
	if errors.Is(err, ErrNone) {
		return session{}, false, nil
	}
	if err != nil {
		return session{}, false, err
	}
	if err := json.Unmarshal([]byte(kept.Reveal()), &found); err != nil {
		return session{}, false, b.Vault.failed(fmt.Errorf("login of %q is damaged", server.Name)) // the cause may quote it
	}
	return found, found.URL == server.URL, nil
}

func (b *Book) save(ctx context.Context, server Server, s session) error {
	encoded, err := json.Marshal(s) //nolint:gosec // it is sealed
	if err != nil {
		return err
	}
	return b.Vault.Put(ctx, server.Name, secret.NewValue(string(encoded)))
}

// A NeedlessError is a server that answers without a login.
type NeedlessError struct{ Server string }

// Error names the server.
func (e *NeedlessError) Error() string { return fmt.Sprintf("server %q asks for no login", e.Server) }

// Login has a person consent, and keeps what that gives. Browse is called with
// the address that the person is to open; the issuer sends their browser back
// to this process. It returns when they have consented or ctx has ended. A
// server that wants no login is a [*NeedlessError].
func (b *Book) Login(ctx context.Context, server Server, browse func(ctx context.Context, url string) error) error {
	back, err := listen(ctx)
	if err != nil {
		return err
	}
	fresh := make(chan session, 1)
	config := &auth.AuthorizationCodeHandlerConfig{
		Client:              b.Client,
		RedirectURL:         back.url,
		RequestRefreshToken: true,
		ScopeFilter: func(named []string) []string {
			if len(server.Scopes) > 0 {
				return slices.Clone(server.Scopes)
			}
			return named
		},
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: "dockgate", RedirectURIs: []string{back.url},
			GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
			TokenEndpointAuthMethod: "none",
		}},
		AuthorizationCodeFetcher: func(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			if err := errors.Join(back.expect(args.URL), browse(ctx, args.URL)); err != nil {
				return nil, err
			}
			return back.wait(ctx)
		},
		NewTokenSource: func(_ context.Context, config *oauth2.Config, token *oauth2.Token) (oauth2.TokenSource, error) {
			fresh <- newSession(server, config, token)
			return oauth2.StaticTokenSource(token), nil
		},
	}
	b.Registration.apply(config)
	refusal, err := b.refusal(ctx, server, config)
	if err == nil {
		err = b.authorize(ctx, server, config, refusal)
	}
	if err := errors.Join(err, back.close(ctx)); err != nil {
		return fmt.Errorf("log in to %q: %w", server.Name, err)
	}
	unlock, err := b.Vault.Lock(ctx, server.Name)
	if err != nil {
		return err
	}
	return errors.Join(b.save(ctx, server, <-fresh), unlock())
}

// authorize does what a refusal asks for.
func (b *Book) authorize(ctx context.Context, server Server, config *auth.AuthorizationCodeHandlerConfig, refusal *http.Response) error {
	handler, err := auth.NewAuthorizationCodeHandler(config)
	if err != nil {
		return errors.Join(err, refusal.Body.Close())
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, nil)
	if err != nil {
		return errors.Join(err, refusal.Body.Close())
	}
	return handler.Authorize(ctx, request, refusal) // closes the body
}

// refusal returns the answer in which a server says where to log in: the one
// that a request of the gateway met, which may be about that request only, or
// the one to a first request. What a login has already stays in the next.
func (b *Book) refusal(ctx context.Context, server Server, config *auth.AuthorizationCodeHandlerConfig) (*http.Response, error) {
	met, err := b.forget(server)
	if err != nil {
		return nil, err
	}
	if met == nil {
		return b.challenge(ctx, server)
	}
	if met.Status == http.StatusForbidden {
		kept, _, err := b.load(server)
		if err != nil {
			return nil, err
		}
		config.ScopeFilter = func(wanted []string) []string {
			for _, scope := range kept.Scopes {
				if !slices.Contains(wanted, scope) {
					wanted = append(wanted, scope)
				}
			}
			return wanted
		}
	}
	return &http.Response{StatusCode: met.Status, Header: http.Header{challengeHeader: met.Challenge}, Body: http.NoBody}, nil
}

// challenge has a server say where to log in. One of the modern era knows no
// initialize.
func (b *Book) challenge(ctx context.Context, server Server) (*http.Response, error) {
	answer, err := b.hello(ctx, server, nil,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"dockgate","version":"1"}}}`)
	if err == nil && answer.StatusCode >= http.StatusBadRequest && answer.StatusCode != http.StatusUnauthorized {
		answer, err = b.hello(ctx, server, http.Header{"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"server/discover"}},
			`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"dockgate","version":"1"}}}}`)
	}
	switch {
	case err != nil || answer.StatusCode == http.StatusUnauthorized:
		return answer, err
	case answer.StatusCode >= http.StatusBadRequest:
		return nil, fmt.Errorf("the server answers %s", answer.Status)
	}
	return nil, &NeedlessError{Server: server.Name}
}

// hello sends a first request. Of an answer that asks for no login it reads the
// body, which nobody needs.
func (b *Book) hello(ctx context.Context, server Server, header http.Header, body string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	maps.Copy(request.Header, header)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	answer, err := b.Client.Do(request)
	if err != nil || answer.StatusCode == http.StatusUnauthorized {
		return answer, err
	}
	_, _ = io.CopyN(io.Discard, answer.Body, 1<<16) //nolint:errcheck // so that the connection is used again
	return answer, answer.Body.Close()
}

// Logout forgets the login for a server, or returns [ErrNone].
func (b *Book) Logout(ctx context.Context, server Server) error {
	unlock, err := b.Vault.Lock(ctx, server.Name)
	if err != nil {
		return err
	}
	_, err = b.forget(server)
	return errors.Join(b.Vault.Delete(server.Name), err, unlock())
}
