package access_test

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/dockgate/dockgate/internal/access"
	"github.com/dockgate/dockgate/internal/access/accesstest"
	"github.com/dockgate/dockgate/internal/principal"
)

const resource = "https://tools.example.com/mcp"

// corp is how the tests' configuration describes an issuer.
func corp(i *accesstest.Issuer) access.Issuer {
	return access.Issuer{Name: "corp", URL: i.URL, Scopes: []access.ScopeRole{
		{Scope: "tools:admin", Role: "owner"}, {Scope: "tools:use", Role: "reader"},
	}}
}

func door(issuers ...access.Issuer) *access.Authenticator {
	roles := readers()
	roles.Default = "reader"
	return access.New(access.Options{Source: &drawer{}, Resource: resource, Issuers: issuers, Roles: roles})
}

func refused(t *testing.T, a *access.Authenticator, token string) *access.RefusedError {
	t.Helper()
	got, err := a.Authenticate(t.Context(), request(t, "Bearer "+token))
	var refusal *access.RefusedError
	if !errors.As(err, &refusal) {
		t.Fatalf("Authenticate = %+v, %v, want a RefusedError", got, err)
	}
	for part := range strings.SplitSeq(token, ".") {
		if text := fmt.Sprintf("%v %+v", err, *refusal); len(part) > 8 && strings.Contains(text, part) {
			t.Errorf("the error holds a part of the token: %s", text)
		}
	}
	return refusal
}

func TestIssuer(t *testing.T) {
	issuer := accesstest.NewIssuer(t)
	other := accesstest.NewIssuer(t)
	a := door(corp(issuer))
	good := accesstest.Request{Subject: "ann", Audience: []string{"something", resource}, Scopes: []string{"tools:use"}}
	change := func(do func(*accesstest.Request)) string {
		r := good
		do(&r)
		return issuer.Token(t, r)
	}
	const metadata = `resource_metadata="https://tools.example.com/.well-known/oauth-protected-resource/mcp"`
	tests := []struct {
		name, token string
		want        principal.Principal
		status      int
		code        string
	}{
		{name: "good", token: issuer.Token(t, good), want: principal.Principal{ID: "corp:ann", Role: "reader"}},
		{
			name: "the scope with the most rights counts", token: change(func(r *accesstest.Request) { r.Scopes = []string{"tools:use", "tools:admin"} }),
			want: principal.Principal{ID: "corp:ann", Role: "owner"},
		},
		{
			name: "audience with a slash", token: change(func(r *accesstest.Request) { r.Audience = []string{resource + "/"} }),
			want: principal.Principal{ID: "corp:ann", Role: "reader"},
		},
		{
			name: "subject with a slash", token: change(func(r *accesstest.Request) { r.Subject = "a/b c\n" }),
			want: principal.Principal{ID: "corp:a%2Fb%20c%0A", Role: "reader"},
		},
		{name: "expired", token: change(func(r *accesstest.Request) { r.For = -time.Minute }), status: 401, code: "invalid_token"},
		{name: "wrong audience", token: change(func(r *accesstest.Request) { r.Audience = []string{"https://tools.example.com/other"} }), status: 401, code: "invalid_token"},
		{name: "no audience", token: change(func(r *accesstest.Request) { r.Audience = nil }), status: 401, code: "invalid_token"},
		{name: "no subject", token: change(func(r *accesstest.Request) { r.Subject = "" }), status: 401, code: "invalid_token"},
		{name: "long subject", token: change(func(r *accesstest.Request) { r.Subject = strings.Repeat("x", 256) }), status: 401, code: "invalid_token"},
		{name: "wrong issuer", token: other.Token(t, good), status: 401, code: "invalid_token"},
		{name: "wrong scope", token: change(func(r *accesstest.Request) { r.Scopes = []string{"tools:used"} }), status: 403, code: "insufficient_scope"},
		{name: "no scope", token: change(func(r *accesstest.Request) { r.Scopes = nil }), status: 403, code: "insufficient_scope"},
		{name: "forged", token: forged(t, issuer.Token(t, good), func(c map[string]any) { c["sub"] = "root" }), status: 401, code: "invalid_token"},
		{name: "forged issuer", token: forged(t, other.Token(t, good), func(c map[string]any) { c["iss"] = issuer.URL }), status: 401, code: "invalid_token"},
		{name: "garbage", token: "a.b.c", status: 401, code: "invalid_token"},
		{name: "opaque", token: "abcdef", status: 401, code: "invalid_token"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.status != 0 {
				refusal := refused(t, a, tt.token)
				for _, part := range []string{metadata, `scope="tools:use"`, `error="` + tt.code + `"`} {
					if !strings.Contains(refusal.Challenge, part) {
						t.Errorf("Challenge = %s, want it to have %s", refusal.Challenge, part)
					}
				}
				if refusal.Status != tt.status || refusal.Hint() == "" {
					t.Errorf("Authenticate = %v (%d, hint %q), want status %d and a hint", refusal, refusal.Status, refusal.Hint(), tt.status)
				}
				return
			}
			got, err := a.Authenticate(t.Context(), request(t, "Bearer "+tt.token))
			if err != nil || got.Principal != tt.want {
				t.Errorf("Authenticate = %+v, %v, want %+v", got.Principal, err, tt.want)
			}
			if until := time.Until(got.Expires); until < 59*time.Minute || until > 62*time.Minute {
				t.Errorf("Authenticate = good for another %v, want an hour", until)
			}
		})
	}
	// Own tokens are good beside those of issuers, and a request without one is
	// told where to get one.
	own, plain := mint(t, "ci", "", time.Time{})
	both := access.New(access.Options{Source: &drawer{tokens: []access.Token{own}}, Resource: resource, Issuers: []access.Issuer{corp(issuer)}})
	if got, err := both.Authenticate(t.Context(), request(t, "Bearer "+plain.Reveal())); err != nil || got.Principal.ID != "ci" {
		t.Errorf("Authenticate with an own token = %+v, %v, want ci", got.Principal, err)
	}
	_, err := both.Authenticate(t.Context(), request(t))
	var refusal *access.RefusedError
	if want := `Bearer realm="dockgate", scope="tools:use", ` + metadata; !errors.As(err, &refusal) || refusal.Challenge != want {
		t.Errorf("Authenticate without a token = %v, want the challenge %s", err, want)
	}
}

// forged returns a token whose claims were changed after it was signed.
func forged(t *testing.T, token string, change func(map[string]any)) string {
	t.Helper()
	parts := strings.Split(token, ".")
	body, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims map[string]any
	if err != nil || json.Unmarshal(body, &claims) != nil {
		t.Fatalf("token %s: %v", token, err)
	}
	change(claims)
	if body, err = json.Marshal(claims); err != nil {
		t.Fatal(err)
	}
	parts[1] = base64.RawURLEncoding.EncodeToString(body)
	return strings.Join(parts, ".")
}

func TestIssuerWithoutScopes(t *testing.T) {
	issuer := accesstest.NewIssuer(t)
	a := door(access.Issuer{Name: "corp", URL: issuer.URL, Audience: "tools"})
	token := issuer.Token(t, accesstest.Request{Subject: "ann", Audience: []string{"tools"}})
	if got, err := a.Authenticate(t.Context(), request(t, "Bearer "+token)); err != nil || got.Principal != (principal.Principal{ID: "corp:ann"}) {
		t.Errorf("Authenticate = %+v, %v, want corp:ann with the default role", got.Principal, err)
	}
	if refusal := refused(t, a, issuer.Token(t, accesstest.Request{Subject: "ann", Audience: []string{resource}})); refusal.Status != 401 {
		t.Errorf("Authenticate with another audience = %v, want 401", refusal)
	}
}

func TestIssuerRotates(t *testing.T) {
	issuer := accesstest.NewIssuer(t)
	a := door(corp(issuer))
	want := accesstest.Request{Subject: "ann", Audience: []string{resource}, Scopes: []string{"tools:use"}}
	before := issuer.Token(t, want)
	for range 10 {
		if _, err := a.Authenticate(t.Context(), request(t, "Bearer "+before)); err != nil {
			t.Fatalf("Authenticate = %v", err)
		}
	}
	if got := issuer.Asked(); got != 1 {
		t.Errorf("ten tokens with one key fetched the keys %d times, want once", got)
	}
	issuer.Rotate(t)
	if _, err := a.Authenticate(t.Context(), request(t, "Bearer "+issuer.Token(t, want))); err != nil {
		t.Errorf("Authenticate after the key rotated = %v", err)
	}
	if refusal := refused(t, a, before); refusal.Status != 401 {
		t.Errorf("Authenticate with the withdrawn key = %v, want 401", refusal)
	}
	// Tokens that name keys that do not exist make the gateway ask now and then,
	// not for each of them.
	key := strangerKey(t)
	for range 50 {
		if refusal := refused(t, a, unsigned(t, key, issuer.URL)); refusal.Status != 401 && refusal.Status != 503 {
			t.Errorf("Authenticate with a forged token = %v, want 401, or 503 when it cannot be checked", refusal)
		}
	}
	if got := issuer.Asked(); got > 6 {
		t.Errorf("fifty forged tokens fetched the keys %d times, want at most 6", got)
	}
	if _, err := a.Authenticate(t.Context(), request(t, "Bearer "+issuer.Token(t, want))); err != nil {
		t.Errorf("Authenticate with a good token meanwhile = %v", err)
	}
}

// unsigned is a token that somebody else signed in the issuer's name.
func unsigned(t *testing.T, key *rsa.PrivateKey, issuer string) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: key}, (&jose.SignerOptions{}).WithHeader("kid", "nobody's"))
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.Signed(signer).Claims(map[string]any{
		"iss": issuer, "sub": "ann", "aud": resource, "scope": "tools:use", "exp": time.Now().Add(time.Hour).Unix(),
	}).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func strangerKey(t *testing.T) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestIssuerDown(t *testing.T) {
	issuer := accesstest.NewIssuer(t)
	want := accesstest.Request{Subject: "ann", Audience: []string{resource}, Scopes: []string{"tools:use"}}
	token := issuer.Token(t, want)
	knows, fresh := door(corp(issuer)), door(corp(issuer))
	if _, err := knows.Authenticate(t.Context(), request(t, "Bearer "+token)); err != nil {
		t.Fatalf("Authenticate = %v", err)
	}
	later := issuer.Token(t, want)
	issuer.Break()
	if _, err := knows.Authenticate(t.Context(), request(t, "Bearer "+later)); err != nil {
		t.Errorf("Authenticate with known keys while the issuer is down = %v", err)
	}
	for range 10 {
		refusal := refused(t, fresh, later)
		var unreachable *access.UnreachableError
		if refusal.Status != http.StatusServiceUnavailable || refusal.Code() != access.CodeUnavailable || !errors.As(refusal, &unreachable) {
			t.Fatalf("Authenticate without keys while the issuer is down = %v, want 503", refusal)
		}
	}
	issuer.Mend()
	other := door(corp(issuer))
	if _, err := other.Authenticate(t.Context(), request(t, "Bearer "+later)); err != nil {
		t.Errorf("Authenticate once the issuer is back = %v", err)
	}
}

// A counterfeit is an issuer whose documents are wrong in one way.
func TestIssuerDocuments(t *testing.T) {
	key := strangerKey(t)
	set, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "k", Algorithm: "RS256", Use: "sig"}}})
	if err != nil {
		t.Fatal(err)
	}
	good := func(self string) string { return fmt.Sprintf(`{"issuer":%q,"jwks_uri":"%s/keys"}`, self, self) }
	tests := []struct {
		name     string
		path     string
		metadata func(self string) string
		keys     string
		want     int
	}{
		{"openid", "/.well-known/openid-configuration", good, string(set), 0},
		{"oauth", "/.well-known/oauth-authorization-server", good, string(set), 0},
		{"a key that is not understood", "/.well-known/openid-configuration", good, `{"keys":[{"kty":"XX","kid":"k"},` + string(set)[len(`{"keys":[`):], 0},
		{"another issuer", "/.well-known/openid-configuration", func(self string) string { return strings.Replace(good(self), "127.0.0.1", "127.0.0.2", 1) }, string(set), 503},
		{"keys in the open", "/.well-known/openid-configuration", func(self string) string {
			return fmt.Sprintf(`{"issuer":%q,"jwks_uri":"http://example.com/keys"}`, self)
		}, string(set), 503},
		{"no metadata", "/nowhere", good, string(set), 503},
		{"no keys", "/.well-known/openid-configuration", good, `{"keys":[]}`, 503},
		{"a symmetric key", "/.well-known/openid-configuration", good, `{"keys":[{"kty":"oct","kid":"k","k":"AAAA"}]}`, 503},
		{"no JSON", "/.well-known/openid-configuration", good, `<html>`, 503},
		{"endless", "/.well-known/openid-configuration", good, `{"keys":[],"x":"` + strings.Repeat("x", 1<<20) + `"}`, 503},
		{"other keys", "/.well-known/openid-configuration", good, strings.Replace(string(set), `"kid":"k"`, `"kid":"other"`, 1), 401},
		{"a key for another algorithm", "/.well-known/openid-configuration", good, strings.Replace(string(set), "RS256", "RS512", 1), 401},
		{"a key for encryption", "/.well-known/openid-configuration", good, strings.Replace(string(set), `"sig"`, `"enc"`, 1), 503},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			mux := http.NewServeMux()
			server := httptest.NewServer(mux)
			defer server.Close()
			write := func(text string) http.HandlerFunc {
				return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) }
			}
			mux.HandleFunc(tt.path, write(tt.metadata(server.URL)))
			mux.HandleFunc("/keys", write(tt.keys))
			signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: key}, (&jose.SignerOptions{}).WithHeader("kid", "k").WithType("at+jwt"))
			if err != nil {
				t.Fatal(err)
			}
			token, err := jwt.Signed(signer).Claims(map[string]any{
				"iss": server.URL, "sub": "ann", "aud": []string{resource}, "scp": []string{"tools:use"}, "exp": time.Now().Add(time.Hour).Unix(),
			}).Serialize()
			if err != nil {
				t.Fatal(err)
			}
			a := door(access.Issuer{Name: "corp", URL: server.URL, Scopes: []access.ScopeRole{{Scope: "tools:use", Role: "reader"}}})
			if tt.want != 0 {
				if refusal := refused(t, a, token); refusal.Status != tt.want {
					t.Errorf("Authenticate = %v, want %d", refusal, tt.want)
				}
				return
			}
			if got, err := a.Authenticate(t.Context(), request(t, "Bearer "+token)); err != nil || got.Principal.ID != "corp:ann" {
				t.Errorf("Authenticate = %+v, %v, want corp:ann", got.Principal, err)
			}
		})
	}
}

// What a token says that was signed properly, but is no good bearer token.
func TestIssuerClaims(t *testing.T) {
	key := strangerKey(t)
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	defer server.Close()
	set, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "k"}}})
	if err != nil {
		t.Fatal(err)
	}
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":"%s/keys"}`, server.URL, server.URL)
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(set) })
	a := door(access.Issuer{Name: "corp", URL: server.URL})
	now := time.Now()
	tests := []struct {
		name   string
		kind   string
		claims map[string]any // on top of good ones; nil takes one away
		want   string         // a part of the reason; empty if it is good
	}{
		{"good", "at+jwt", nil, ""},
		{"good too", "application/at+JWT", nil, ""},
		{"no type", "", nil, ""},
		{"no expiry", "", map[string]any{"exp": nil}, "does not say when"},
		{"not yet", "", map[string]any{"nbf": now.Add(time.Hour).Unix()}, "not good yet"},
		{"clocks a little apart", "", map[string]any{"nbf": now.Add(20 * time.Second).Unix(), "exp": now.Add(-20 * time.Second).Unix()}, ""},
		{"bound to a key", "", map[string]any{"cnf": map[string]any{"jkt": "x"}}, "bound to a key"},
		{"logout token", "logout+jwt", nil, "not known here"},
		{"proof", "dpop+jwt", nil, "not known here"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			claims := map[string]any{"iss": server.URL, "sub": "ann", "aud": resource, "exp": now.Add(time.Hour).Unix()}
			for name, value := range tt.claims {
				claims[name] = value
				if value == nil {
					delete(claims, name)
				}
			}
			options := (&jose.SignerOptions{}).WithHeader("kid", "k")
			if tt.kind != "" {
				options = options.WithType(jose.ContentType(tt.kind))
			}
			signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.PS256, Key: key}, options)
			if err != nil {
				t.Fatal(err)
			}
			token, err := jwt.Signed(signer).Claims(claims).Serialize()
			if err != nil {
				t.Fatal(err)
			}
			if tt.want != "" {
				if refusal := refused(t, a, token); refusal.Status != 401 || !strings.Contains(refusal.Reason, tt.want) {
					t.Errorf("Authenticate = %v, want 401: %s", refusal, tt.want)
				}
				return
			}
			if _, err := a.Authenticate(t.Context(), request(t, "Bearer "+token)); err != nil {
				t.Errorf("Authenticate = %v", err)
			}
		})
	}
}

func TestMetadata(t *testing.T) {
	issuer := accesstest.NewIssuer(t)
	a := door(corp(issuer))
	if want := "/.well-known/oauth-protected-resource/mcp"; a.MetadataPath() != want {
		t.Errorf("MetadataPath = %q, want %q", a.MetadataPath(), want)
	}
	answer := httptest.NewRecorder()
	a.MetadataHandler().ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, a.MetadataPath(), http.NoBody))
	var got oauthex.ProtectedResourceMetadata
	if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil {
		t.Fatalf("metadata: %v", err)
	}
	want := oauthex.ProtectedResourceMetadata{
		Resource: resource, ResourceName: "dockgate", AuthorizationServers: []string{issuer.URL},
		ScopesSupported: []string{"tools:admin", "tools:use"}, BearerMethodsSupported: []string{"header"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
	answer = httptest.NewRecorder()
	door().MetadataHandler().ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody))
	if answer.Code != http.StatusNotFound {
		t.Errorf("metadata without issuers = %d, want 404", answer.Code)
	}
}

func TestCheckIssuer(t *testing.T) {
	tests := []struct {
		issuer access.Issuer
		want   string
	}{
		{access.Issuer{Name: "corp", URL: "https://issuer.example.com"}, ""},
		{access.Issuer{Name: "corp", URL: "https://issuer.example.com/realms/a/"}, ""},
		{access.Issuer{Name: "corp", URL: "http://localhost:9998"}, ""},
		{access.Issuer{Name: "corp", URL: "http://[::1]:9998"}, ""},
		{access.Issuer{Name: "a:b", URL: "https://issuer.example.com"}, "is no name"},
		{access.Issuer{Name: "corp", URL: "http://issuer.example.com"}, "neither https"},
		{access.Issuer{Name: "corp", URL: "issuer.example.com"}, "no absolute URL"},
		{access.Issuer{Name: "corp", URL: "https://"}, "no absolute URL"},
		{access.Issuer{Name: "corp", URL: "https://a@issuer.example.com"}, "has a query"},
		{access.Issuer{Name: "corp", URL: "https://issuer.example.com/?x"}, "has a query"},
		{access.Issuer{Name: "corp", URL: "https://issuer.example.com/\"x"}, "character"},
		{access.Issuer{Name: "corp", URL: "https://i.example.com", Scopes: []access.ScopeRole{{Scope: "a b", Role: "r"}}}, "no scope"},
		{access.Issuer{Name: "corp", URL: "https://i.example.com", Scopes: []access.ScopeRole{{Scope: `a"`, Role: "r"}}}, "no scope"},
		{access.Issuer{Name: "corp", URL: "https://i.example.com", Scopes: []access.ScopeRole{{Scope: "a", Role: ""}}}, "is no name"},
	}
	for _, tt := range tests {
		err := tt.issuer.Check()
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Check(%+v) = %v, want %q", tt.issuer, err, tt.want)
		}
	}
}

// nowhere is a network that cannot be reached.
type nowhere struct{}

func (nowhere) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("unreachable")
}

func FuzzAuthenticate(f *testing.F) {
	const issuer = "https://issuer.example.com"
	encode := base64.RawURLEncoding.EncodeToString
	claims := encode([]byte(`{"iss":"` + issuer + `","sub":"a","aud":"` + resource + `","scope":"a b","exp":99999999999}`))
	for _, header := range []string{
		`{"alg":"RS256","kid":"k"}`, `{"alg":"none"}`, `{"alg":"HS256","typ":"at+jwt"}`, `{"alg":"RS256","typ":["JWT"],"crit":["x"]}`,
	} {
		f.Add("Bearer " + encode([]byte(header)) + "." + claims + "." + encode([]byte("signature")))
	}
	for _, header := range []string{"", "Bearer", "Bearer a.b.c", "Basic YTpi", "Bearer dockgate_x", "Bearer  x y", "bearer\tx"} {
		f.Add(header)
	}
	a := access.New(access.Options{
		Source: &drawer{}, Resource: resource, Issuers: []access.Issuer{{Name: "corp", URL: issuer}},
		Client: &http.Client{Transport: nowhere{}},
	})
	f.Fuzz(func(t *testing.T, header string) {
		got, err := a.Authenticate(t.Context(), request(t, header))
		var refusal *access.RefusedError
		if !errors.As(err, &refusal) || refusal.Reason == "" || strings.ContainsAny(refusal.Challenge, "\r\n") {
			t.Errorf("Authenticate(%q) = %+v, %v, want a RefusedError", header, got, err)
		}
	})
}
