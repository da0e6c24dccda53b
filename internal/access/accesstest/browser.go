package accesstest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"

	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// register answers dynamic client registration (RFC 7591), which the provider
// does not have.
func (i *Issuer) register(w http.ResponseWriter, r *http.Request) {
	metadata := map[string]any{}
	if err := json.NewDecoder(r.Body).Decode(&metadata); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var uris []string
	given, _ := metadata["redirect_uris"].([]any)
	for _, uri := range given {
		uris = append(uris, fmt.Sprint(uri))
	}
	s := i.storage
	s.mu.Lock()
	defer s.mu.Unlock()
	id := "registered-" + strconv.Itoa(len(s.clients))
	s.clients[id] = signedClient{storage.NativeClient(id, uris...)}
	metadata["client_id"] = id
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(metadata)
}

// describe adds what the provider's metadata leaves out.
func (i *Issuer) describe(w http.ResponseWriter, r *http.Request, provider http.Handler) {
	recorded := httptest.NewRecorder()
	provider.ServeHTTP(recorded, r)
	metadata := map[string]any{}
	if err := json.Unmarshal(recorded.Body.Bytes(), &metadata); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	metadata["registration_endpoint"] = i.URL + "/register"
	metadata["scopes_supported"] = []string{"openid", "offline_access"}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(metadata)
}

// Consent is a person who opens an address in a browser, logs in, and goes
// where the issuer sends them. It returns the last page.
func (i *Issuer) Consent(ctx context.Context, address string) (page string, err error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return "", err
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	browser := &http.Client{Jar: jar, Transport: transport}
	form, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return "", err
	}
	at, body, err := visit(browser, form)
	if err != nil {
		return "", err
	}
	id := at.Query().Get("authRequestID")
	if id == "" {
		return "", fmt.Errorf("no login page at %s: %s", at, body)
	}
	host, _, _ := strings.Cut(strings.TrimPrefix(i.URL, "http://"), ":")
	filled := url.Values{"id": {id}, "username": {"test-user@" + host}, "password": {"verysecure"}}
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, i.URL+"/login/username", strings.NewReader(filled.Encode()))
	if err != nil {
		return "", err
	}
	post.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	_, body, err = visit(browser, post)
	return body, err
}

// visit follows a request to the page that it ends at.
func visit(browser *http.Client, r *http.Request) (at *url.URL, body string, err error) {
	answer, err := browser.Do(r)
	if err != nil {
		return nil, "", err
	}
	content, err := io.ReadAll(answer.Body)
	err = errors.Join(err, answer.Body.Close())
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", answer.Request.URL, answer.Status, content)
	}
	return answer.Request.URL, string(content), err
}

// Revoke ends every login of a person: their refresh tokens are no good any more.
func (i *Issuer) Revoke() {
	i.storage.mu.Lock()
	defer i.storage.mu.Unlock()
	i.storage.revoked = true
}

// Refreshed is how often tokens were refreshed.
func (i *Issuer) Refreshed() int {
	i.storage.mu.Lock()
	defer i.storage.mu.Unlock()
	return i.storage.refreshed
}

// forResource is a request that is for the resource that was asked for (RFC
// 8707), and not for the client itself.
type forResource struct {
	op.AuthRequest
	audience []string
}

// GetAudience implements [op.TokenRequest].
func (r forResource) GetAudience() []string { return r.audience }

// refreshFor is the same for refresh tokens.
type refreshFor struct {
	op.RefreshTokenRequest
	audience []string
}

// GetAudience implements [op.TokenRequest].
func (r refreshFor) GetAudience() []string { return r.audience }

// plain is the request that the example storage knows.
func plain(request op.TokenRequest) op.TokenRequest {
	switch wrapped := request.(type) {
	case forResource:
		return wrapped.AuthRequest
	case refreshFor:
		return wrapped.RefreshTokenRequest
	}
	return request
}
