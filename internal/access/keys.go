package access

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"
)

// How an issuer's keys are kept. They are fetched when a token needs one that
// is not there, and again after refreshEvery, so that a key that the issuer
// withdrew stops being good. While the issuer cannot be reached those that are
// there go on, but not for longer than keepFor.
const (
	refreshEvery = time.Hour
	keepFor      = 24 * time.Hour
	// Tokens with keys that do not exist make the gateway ask at most so often.
	fetchEvery = 10 * time.Second
	fetchBurst = 5
)

// maxDocument is how long a document of an issuer may be, in bytes.
const maxDocument = 1 << 20

// An UnreachableError says that an issuer's keys could not be had.
type UnreachableError struct {
	Issuer string
	Err    error
}

// Error names the issuer and the cause.
func (e *UnreachableError) Error() string {
	return fmt.Sprintf("keys of issuer %s: %v", e.Issuer, e.Err)
}

// Unwrap returns the cause.
func (e *UnreachableError) Unwrap() error { return e.Err }

var (
	errSignature = errors.New("no key of the issuer made this signature")
	errTooOften  = errors.New("asked for too often; wait a moment")
)

// keys are those of one issuer.
type keys struct {
	issuer  string
	client  *http.Client
	limiter *rate.Limiter
	flight  singleflight.Group

	mu      sync.Mutex
	set     []jose.JSONWebKey
	fetched time.Time
}

func newKeys(issuer string, client *http.Client) *keys {
	return &keys{issuer: issuer, client: client, limiter: rate.NewLimiter(rate.Every(fetchEvery), fetchBurst)}
}

// verify reads the claims of a token that one of the keys signed. An
// [*UnreachableError] says that the key is not there and cannot be fetched.
func (k *keys) verify(ctx context.Context, token *jwt.JSONWebToken, into *claims) error {
	header := token.Headers[0]
	switch there := k.matching(header); {
	case tryKeys(there, token, into):
		return nil
	case len(there) > 0 && header.KeyID != "":
		return errSignature // the key is there, and did not sign it
	}
	if err := k.fetch(ctx); err != nil {
		return err
	}
	if tryKeys(k.matching(header), token, into) {
		return nil
	}
	return errSignature
}

func tryKeys(set []jose.JSONWebKey, token *jwt.JSONWebToken, into *claims) bool {
	for _, key := range set {
		var proven claims
		if token.Claims(key.Key, &proven) == nil {
			*into = proven
			return true
		}
	}
	return false
}

// matching returns the keys that may have signed a token with this header.
func (k *keys) matching(header jose.Header) []jose.JSONWebKey {
	k.mu.Lock()
	defer k.mu.Unlock()
	if time.Since(k.fetched) > keepFor {
		return nil
	}
	var matching []jose.JSONWebKey
	for _, key := range k.set {
		if (header.KeyID == "" || key.KeyID == header.KeyID) && (key.Algorithm == "" || key.Algorithm == header.Algorithm) {
			matching = append(matching, key)
		}
	}
	return matching
}

// refresh fetches keys again that have been there for a while. If that fails
// it is tried again with the next refresh.
func (k *keys) refresh(ctx context.Context) {
	k.mu.Lock()
	old := !k.fetched.IsZero() && time.Since(k.fetched) > refreshEvery
	k.mu.Unlock()
	if old {
		_ = k.fetch(ctx) //nolint:errcheck // the keys that are there go on
	}
}

// fetch replaces the keys, once for all who ask at the same time. If it fails
// those that are there stay.
func (k *keys) fetch(ctx context.Context) error {
	done := k.flight.DoChan("", func() (any, error) {
		if !k.limiter.Allow() {
			return nil, errTooOften
		}
		// It is for all who wait, and bounded by the client's own time.
		set, err := k.download(context.WithoutCancel(ctx))
		if err != nil {
			return nil, err
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		k.set, k.fetched = set, time.Now()
		return nil, nil
	})
	select {
	case <-ctx.Done():
		return ctx.Err()
	case result := <-done:
		if result.Err != nil {
			return &UnreachableError{Issuer: k.issuer, Err: result.Err}
		}
		return nil
	}
}

// download finds the issuer's metadata, and in it the keys.
func (k *keys) download(ctx context.Context) ([]jose.JSONWebKey, error) {
	var failures []error
	for _, at := range metadataURLs(k.issuer) {
		var found struct {
			Issuer  string `json:"issuer"`
			JWKSURI string `json:"jwks_uri"`
		}
		err := k.get(ctx, at, &found)
		switch {
		case err != nil:
			failures = append(failures, err)
			continue
		case found.Issuer != k.issuer:
			return nil, fmt.Errorf("%s is of another issuer, %q", at, found.Issuer)
		}
		if location, err := url.Parse(found.JWKSURI); err != nil || (location.Scheme != "https" && (location.Scheme != "http" || !isLoopback(location.Hostname()))) {
			return nil, fmt.Errorf("%s: jwks_uri %q is neither https nor on a loopback address", at, found.JWKSURI)
		}
		return k.downloadSet(ctx, found.JWKSURI)
	}
	return nil, errors.Join(failures...)
}

// metadataURLs are where an issuer's metadata may be: OpenID Connect Discovery
// and RFC 8414, as MCP wants both to be tried.
func metadataURLs(issuer string) []string {
	at, err := url.Parse(issuer)
	if err != nil {
		return nil
	}
	path := strings.TrimSuffix(at.EscapedPath(), "/")
	root := at.Scheme + "://" + at.Host
	return []string{root + path + "/.well-known/openid-configuration", root + "/.well-known/oauth-authorization-server" + path}
}

func (k *keys) downloadSet(ctx context.Context, at string) ([]jose.JSONWebKey, error) {
	var found struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := k.get(ctx, at, &found); err != nil {
		return nil, err
	}
	var set []jose.JSONWebKey
	for _, raw := range found.Keys {
		var key jose.JSONWebKey
		// One that is not understood is left out (RFC 7517, section 5).
		if key.UnmarshalJSON(raw) == nil && key.Valid() && key.IsPublic() && (key.Use == "" || key.Use == "sig") {
			set = append(set, key)
		}
	}
	if len(set) == 0 {
		return nil, fmt.Errorf("%s has no key to check signatures with", at)
	}
	return set, nil
}

func (k *keys) get(ctx context.Context, at string, into any) (err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at, http.NoBody)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "application/json")
	response, err := k.client.Do(request)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", at, response.Status)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxDocument+1))
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", at, err)
	case len(body) > maxDocument:
		return fmt.Errorf("%s: longer than 1 MiB", at)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	return nil
}
