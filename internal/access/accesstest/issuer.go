// Package accesstest has a real issuer of tokens for tests: the OpenID
// provider of zitadel/oidc, with its example storage, on a loopback address.
package accesstest

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// An Issuer is an OpenID provider that runs until the test ends.
type Issuer struct {
	// URL is its identifier.
	URL string

	storage *issuerStorage
	down    atomic.Bool
	asked   atomic.Int64
	// lifetime is of the tokens that people get.
	lifetime atomic.Int64
}

// NewIssuer starts an issuer.
func NewIssuer(t *testing.T) *Issuer {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	i := &Issuer{URL: "http://" + server.Listener.Addr().String()}
	i.storage = &issuerStorage{Storage: storage.NewStorage(storage.NewUserStore(i.URL)), clients: map[string]op.Client{}}
	i.lifetime.Store(int64(time.Hour))
	i.storage.rotate(t)
	provider := exampleop.SetupServer(i.URL, i.storage, slog.New(slog.DiscardHandler), false)
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if i.down.Load() {
			panic(http.ErrAbortHandler) // the connection breaks, with no answer
		}
		switch r.URL.Path {
		case "/keys":
			i.asked.Add(1)
		case "/register":
			i.register(w, r)
			return
		case "/.well-known/openid-configuration":
			i.describe(w, r, provider)
			return
		case "/auth":
			i.storage.order(Request{Audience: r.URL.Query()["resource"], For: time.Duration(i.lifetime.Load())})
		}
		provider.ServeHTTP(w, r)
	})
	server.Start()
	t.Cleanup(server.Close)
	return i
}

// Rotate replaces the key with which the issuer signs; the old one is gone.
func (i *Issuer) Rotate(t *testing.T) {
	t.Helper()
	i.storage.rotate(t)
}

// Break makes the issuer unreachable.
func (i *Issuer) Break() { i.down.Store(true) }

// Mend makes it reachable again.
func (i *Issuer) Mend() { i.down.Store(false) }

// Lasts sets how long the tokens are good that people get from now on.
func (i *Issuer) Lasts(d time.Duration) {
	i.lifetime.Store(int64(d))
	i.storage.mu.Lock()
	defer i.storage.mu.Unlock()
	i.storage.next.For = d
}

// Asked is how often its keys were fetched.
func (i *Issuer) Asked() int64 { return i.asked.Load() }

// A Request is a token as a test wants it.
type Request struct {
	Subject  string
	Audience []string
	Scopes   []string
	// For is how long it is good; zero is an hour.
	For time.Duration
}

// Token has the issuer sign an access token, by the client credentials grant.
func (i *Issuer) Token(t *testing.T, r Request) string {
	t.Helper()
	if r.For == 0 {
		r.For = time.Hour
	}
	i.storage.order(r)
	form := url.Values{
		"grant_type": {"client_credentials"}, "client_id": {"sid1"}, "client_secret": {"verysecret"},
		"scope": {strings.Join(r.Scopes, " ")},
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, i.URL+"/oauth/token", strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatalf("token: %v", err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatalf("token: %v", err)
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	var answer struct {
		Token string `json:"access_token"`
	}
	if err != nil || response.StatusCode != http.StatusOK || json.Unmarshal(body, &answer) != nil || answer.Token == "" {
		t.Fatalf("token: %s: %s (%v)", response.Status, body, err)
	}
	return answer.Token
}

// issuerStorage is the example storage, but for keys that rotate and tokens
// that are as the test wants them: signed, for a resource, with their scopes.
type issuerStorage struct {
	*storage.Storage

	mu    sync.Mutex
	key   *rsa.PrivateKey
	count int
	next  Request
	// clients are those that have registered.
	clients   map[string]op.Client
	revoked   bool
	refreshed int
}

func (s *issuerStorage) rotate(t *testing.T) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatalf("key: %v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.key = key
	s.count++
}

func (s *issuerStorage) order(r Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = r
}

// A signingKey is [op.SigningKey], and a publicKey is [op.Key].
type (
	signingKey struct {
		id  string
		key *rsa.PrivateKey
	}
	publicKey struct{ signingKey }
)

func (k signingKey) ID() string                                  { return k.id }
func (k signingKey) Key() any                                    { return k.key }
func (k signingKey) SignatureAlgorithm() jose.SignatureAlgorithm { return jose.RS256 }

func (k publicKey) Key() any                           { return &k.key.PublicKey }
func (k publicKey) Algorithm() jose.SignatureAlgorithm { return jose.RS256 }
func (k publicKey) Use() string                        { return "sig" }

func (s *issuerStorage) current() signingKey {
	s.mu.Lock()
	defer s.mu.Unlock()
	return signingKey{id: "key-" + strconv.Itoa(s.count), key: s.key}
}

// SigningKey implements [op.Storage].
func (s *issuerStorage) SigningKey(context.Context) (op.SigningKey, error) { return s.current(), nil }

// KeySet implements [op.Storage].
func (s *issuerStorage) KeySet(context.Context) ([]op.Key, error) {
	return []op.Key{publicKey{s.current()}}, nil
}

// CreateAccessToken implements [op.Storage].
func (s *issuerStorage) CreateAccessToken(ctx context.Context, request op.TokenRequest) (string, time.Time, error) {
	id, expires, err := s.Storage.CreateAccessToken(ctx, plain(request))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next.For != 0 {
		expires = time.Now().Add(s.next.For)
	}
	return id, expires, err
}

// CreateAccessAndRefreshTokens implements [op.Storage].
func (s *issuerStorage) CreateAccessAndRefreshTokens(ctx context.Context, request op.TokenRequest, current string) (id, refresh string, expires time.Time, err error) {
	id, refresh, expires, err = s.Storage.CreateAccessAndRefreshTokens(ctx, plain(request), current)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next.For != 0 {
		expires = time.Now().Add(s.next.For)
	}
	if current != "" {
		s.refreshed++
	}
	return id, refresh, expires, err
}

// AuthRequestByCode implements [op.Storage].
func (s *issuerStorage) AuthRequestByCode(ctx context.Context, code string) (op.AuthRequest, error) {
	request, err := s.Storage.AuthRequestByCode(ctx, code)
	s.mu.Lock()
	defer s.mu.Unlock()
	return forResource{request, s.next.Audience}, err
}

// TokenRequestByRefreshToken implements [op.Storage].
func (s *issuerStorage) TokenRequestByRefreshToken(ctx context.Context, token string) (op.RefreshTokenRequest, error) {
	request, err := s.Storage.TokenRequestByRefreshToken(ctx, token)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && s.revoked {
		err = op.ErrInvalidRefreshToken
	}
	return refreshFor{request, s.next.Audience}, err
}

// GetClientByClientID implements [op.Storage].
func (s *issuerStorage) GetClientByClientID(ctx context.Context, id string) (op.Client, error) {
	s.mu.Lock()
	registered := s.clients[id]
	s.mu.Unlock()
	if registered != nil {
		return registered, nil
	}
	return s.Storage.GetClientByClientID(ctx, id)
}

// ClientCredentials implements [op.ClientCredentialsStorage].
func (s *issuerStorage) ClientCredentials(ctx context.Context, id, secret string) (op.Client, error) {
	client, err := s.Storage.ClientCredentials(ctx, id, secret)
	if err != nil {
		return nil, err
	}
	return signedClient{client}, nil
}

// A signedClient gets tokens that are signed, and not opaque.
type signedClient struct{ op.Client }

func (signedClient) AccessTokenType() op.AccessTokenType { return op.AccessTokenTypeJWT }

// IsScopeAllowed allows all.
func (signedClient) IsScopeAllowed(string) bool { return true }

// RestrictAdditionalAccessTokenScopes keeps all scopes.
func (signedClient) RestrictAdditionalAccessTokenScopes() func([]string) []string {
	return func(scopes []string) []string { return scopes }
}

// ClientCredentialsTokenRequest implements [op.ClientCredentialsStorage].
func (s *issuerStorage) ClientCredentialsTokenRequest(_ context.Context, _ string, scopes []string) (op.TokenRequest, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &oidc.JWTTokenRequest{Subject: s.next.Subject, Audience: s.next.Audience, Scopes: scopes}, nil
}

// GetPrivateClaimsFromScopes implements [op.Storage]: tokens name their scopes
// (RFC 9068, section 2.2.3).
func (s *issuerStorage) GetPrivateClaimsFromScopes(_ context.Context, _, _ string, scopes []string) (map[string]any, error) {
	if len(scopes) == 0 {
		return map[string]any{}, nil
	}
	return map[string]any{"scope": strings.Join(scopes, " ")}, nil
}
