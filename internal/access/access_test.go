package access_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dockgate/dockgate/internal/access"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/secret"
)

// drawer is a source in memory, for tests in which time is not real.
type drawer struct {
	mu       sync.Mutex
	revision int64
	tokens   []access.Token
	err      error
}

func (d *drawer) TokenRevision(context.Context) (int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.revision, d.err
}

func (d *drawer) Tokens(context.Context) ([]access.Token, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.tokens, d.err
}

func (d *drawer) change(err error, tokens ...access.Token) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.revision++
	d.tokens, d.err = tokens, err
}

func mint(t *testing.T, name, role string, expires time.Time) (access.Token, secret.Value) {
	t.Helper()
	token, plain, err := access.Mint(name, role, expires)
	if err != nil {
		t.Fatalf("Mint(%q, %q) = %v", name, role, err)
	}
	return token, plain
}

func request(t *testing.T, authorization ...string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mcp", http.NoBody)
	for _, value := range authorization {
		r.Header.Add("Authorization", value)
	}
	return r
}

// readers are the roles of a configuration with one, that has no default.
func readers() access.Roles {
	return access.Roles{Each: map[string]*access.Role{"reader": {Name: "reader"}}}
}

// TestCurrentRoles holds that the roles of now count where they can change.
func TestCurrentRoles(t *testing.T) {
	ann, plain := mint(t, "ann", "writer", time.Time{})
	now := readers()
	a := access.New(access.Options{Source: &drawer{tokens: []access.Token{ann}}, Roles: readers(), Current: func() access.Roles { return now }})
	var refused *access.RefusedError
	if _, err := a.Authenticate(t.Context(), request(t, "Bearer "+plain.Reveal())); !errors.As(err, &refused) || refused.Status != http.StatusForbidden {
		t.Errorf("Authenticate with a role that there is not = %v, want it refused", err)
	}
	now = access.Roles{Each: map[string]*access.Role{"writer": {Name: "writer"}}}
	if got, err := a.Authenticate(t.Context(), request(t, "Bearer "+plain.Reveal())); err != nil || got.Principal.Role != "writer" {
		t.Errorf("Authenticate once there is the role = %+v, %v, want it let in", got, err)
	}
}

func TestAuthenticate(t *testing.T) {
	ann, annPlain := mint(t, "ann", "reader", time.Time{})
	old, oldPlain := mint(t, "old", "", time.Now())
	_, goneToken := mint(t, "gone", "", time.Time{})
	roleless, rolelessPlain := mint(t, "roleless", "", time.Time{})
	stale, stalePlain := mint(t, "stale", "writer", time.Time{})
	a := access.New(access.Options{Source: &drawer{tokens: []access.Token{ann, old, roleless, stale}}, Roles: readers()})
	tests := []struct {
		name      string
		headers   []string
		want      principal.Principal
		status    int
		challenge string
	}{
		{name: "good", headers: []string{"Bearer " + annPlain.Reveal()}, want: principal.Principal{ID: "ann", Role: "reader"}},
		{name: "small letters", headers: []string{"bearer  " + annPlain.Reveal()}, want: principal.Principal{ID: "ann", Role: "reader"}},
		{name: "no role", headers: []string{"Bearer " + rolelessPlain.Reveal()}, status: 403},
		{name: "a role that is gone", headers: []string{"Bearer " + stalePlain.Reveal()}, status: 403},
		{name: "none", status: 401, challenge: `Bearer realm="dockgate"`},
		{name: "expired", headers: []string{"Bearer " + oldPlain.Reveal()}, status: 401, challenge: `Bearer realm="dockgate", error="invalid_token", error_description="the token has expired"`},
		{name: "unknown", headers: []string{"Bearer " + goneToken.Reveal()}, status: 401, challenge: `Bearer realm="dockgate", error="invalid_token", error_description="the token is not known here, or was revoked"`},
		{name: "digest", headers: []string{fmt.Sprintf("Bearer %x", ann.Digest)}, status: 401},
		{name: "cut", headers: []string{"Bearer " + annPlain.Reveal()[:20]}, status: 401},
		{name: "name", headers: []string{"Bearer ann"}, status: 401},
		{name: "basic", headers: []string{"Basic " + annPlain.Reveal()}, status: 400},
		{name: "bare", headers: []string{annPlain.Reveal()}, status: 400},
		{name: "empty", headers: []string{""}, status: 400},
		{name: "no token", headers: []string{"Bearer "}, status: 400},
		{name: "two headers", headers: []string{"Bearer " + annPlain.Reveal(), "Bearer " + annPlain.Reveal()}, status: 400},
		{name: "two tokens", headers: []string{"Bearer " + annPlain.Reveal() + ", Basic eA=="}, status: 400},
		{name: "long", headers: []string{"Bearer " + strings.Repeat("x", 1<<16)}, status: 400},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := request(t, tt.headers...)
			got, err := a.Authenticate(t.Context(), r)
			if got.Principal != tt.want {
				t.Errorf("Authenticate = %+v, want %+v", got.Principal, tt.want)
			}
			if left := r.Header.Values("Authorization"); len(left) > 0 {
				t.Errorf("Authenticate left %q on the request", left)
			}
			var refused *access.RefusedError
			if tt.status == 0 {
				if err != nil {
					t.Errorf("Authenticate = %v, want no error", err)
				}
				return
			}
			if !errors.As(err, &refused) || refused.Status != tt.status {
				t.Fatalf("Authenticate = %#v, want a RefusedError with status %d", err, tt.status)
			}
			if tt.challenge != "" && refused.Challenge != tt.challenge {
				t.Errorf("Challenge = %s, want %s", refused.Challenge, tt.challenge)
			}
			code := access.CodeUnauthenticated
			if tt.status == http.StatusForbidden {
				code = access.CodeForbidden
			}
			if refused.Hint() == "" || refused.Code() != code || !strings.HasPrefix(refused.Challenge, "Bearer ") {
				t.Errorf("Hint = %q, Code = %q, Challenge = %q, want each", refused.Hint(), refused.Code(), refused.Challenge)
			}
			for _, plain := range []secret.Value{annPlain, oldPlain, goneToken, rolelessPlain, stalePlain} {
				if text := fmt.Sprintf("%v %#v %+v", err, refused, *refused); strings.Contains(text, plain.Reveal()) {
					t.Errorf("the error holds the token: %s", text)
				}
			}
		})
	}
}

func TestAuthenticateOpen(t *testing.T) {
	a := access.New(access.Options{Source: &drawer{}, Open: true})
	if got, err := a.Authenticate(t.Context(), request(t)); err != nil || got.Principal != principal.Local {
		t.Errorf("Authenticate without a token = %+v, %v, want %v", got.Principal, err, principal.Local)
	}
	if got, err := a.Authenticate(t.Context(), request(t, "Bearer wrong")); err == nil {
		t.Errorf("Authenticate with a wrong token = %+v, want an error", got.Principal)
	}
}

func TestAuthenticateFailsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		token, plain := mint(t, "ann", "", time.Time{})
		source := &drawer{tokens: []access.Token{token}}
		a := access.New(access.Options{Source: source})
		if _, err := a.Authenticate(t.Context(), request(t, "Bearer "+plain.Reveal())); err != nil {
			t.Fatalf("Authenticate = %v", err)
		}
		damage := errors.New("disk on fire")
		source.change(damage, token)
		sleep(t, 250*time.Millisecond)
		for range 2 {
			_, err := a.Authenticate(t.Context(), request(t, "Bearer "+plain.Reveal()))
			var refused *access.RefusedError
			if !errors.As(err, &refused) || refused.Status != 503 || refused.Code() != access.CodeUnavailable || !errors.Is(err, damage) {
				t.Fatalf("Authenticate without the tokens = %v, want 503", err)
			}
		}
		source.change(nil, token)
		if _, err := a.Authenticate(t.Context(), request(t, "Bearer "+plain.Reveal())); err != nil {
			t.Errorf("Authenticate with the tokens back = %v", err)
		}
	})
}

func TestRevokedWithin250ms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		token, plain := mint(t, "ann", "", time.Time{})
		brief, briefPlain := mint(t, "brief", "", time.Now().Add(time.Minute))
		source := &drawer{tokens: []access.Token{token, brief}}
		a := access.New(access.Options{Source: source})
		running(t, a)
		watch := func(plain secret.Value) context.Context {
			visitor, err := a.Authenticate(t.Context(), request(t, "Bearer "+plain.Reveal()))
			if err != nil {
				t.Fatalf("Authenticate = %v", err)
			}
			ctx, stop := a.Watch(t.Context(), visitor)
			t.Cleanup(stop)
			return ctx
		}
		ann, soon := watch(plain), watch(briefPlain)
		sleep(t, 30*time.Second)
		if ann.Err() != nil || soon.Err() != nil {
			t.Fatalf("watches ended early: %v, %v", context.Cause(ann), context.Cause(soon))
		}
		source.change(nil, brief)
		sleep(t, 250*time.Millisecond)
		if _, err := a.Authenticate(t.Context(), request(t, "Bearer "+plain.Reveal())); err == nil {
			t.Error("Authenticate 250 ms after the token was revoked = nil, want an error")
		}
		var refused *access.RefusedError
		if !errors.As(context.Cause(ann), &refused) || refused.Status != 401 {
			t.Errorf("the watch's cause = %v, want a RefusedError with 401", context.Cause(ann))
		}
		sleep(t, time.Minute)
		if !errors.As(context.Cause(soon), &refused) || !strings.Contains(refused.Reason, "expired") {
			t.Errorf("the cause of the watch of an expired token = %v, want that it expired", context.Cause(soon))
		}
	})
}

func TestWatchEndsWithoutTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		token, plain := mint(t, "ann", "", time.Time{})
		source := &drawer{tokens: []access.Token{token}}
		a := access.New(access.Options{Source: source, Open: true})
		running(t, a)
		visitor, err := a.Authenticate(t.Context(), request(t, "Bearer "+plain.Reveal()))
		if err != nil {
			t.Fatalf("Authenticate = %v", err)
		}
		local, err := a.Authenticate(t.Context(), request(t))
		if err != nil {
			t.Fatalf("Authenticate = %v", err)
		}
		ctx, stop := a.Watch(t.Context(), visitor)
		defer stop()
		open, stopOpen := a.Watch(t.Context(), local)
		source.change(errors.New("disk on fire"))
		sleep(t, 250*time.Millisecond)
		var refused *access.RefusedError
		if !errors.As(context.Cause(ctx), &refused) || refused.Status != 503 {
			t.Errorf("the watch's cause = %v, want 503", context.Cause(ctx))
		}
		if open.Err() != nil {
			t.Errorf("the watch of a caller without a token ended: %v", context.Cause(open))
		}
		stopOpen()
		if open.Err() == nil {
			t.Error("stop did not end the watch")
		}
	})
}

// running runs an authenticator until the test ends.
func running(t *testing.T, a *access.Authenticator) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run = %v", err)
		}
	})
}

// sleep lets a bubble's time pass.
func sleep(t *testing.T, d time.Duration) {
	t.Helper()
	<-time.After(d)
	synctest.Wait()
}

func TestMint(t *testing.T) {
	expires := time.Now().Add(time.Hour)
	token, plain := mint(t, "ann", "reader", expires)
	want := access.Token{Name: "ann", Role: "reader", Expires: expires.UTC(), Digest: access.DigestOf(plain.Reveal())}
	if diff := cmp.Diff(want, token, cmpopts.IgnoreFields(access.Token{}, "Created")); diff != "" {
		t.Errorf("Mint (-want +got):\n%s", diff)
	}
	if text := fmt.Sprintf("%+v %v", token, plain); strings.Contains(text, plain.Reveal()) {
		t.Errorf("Mint's results print the token: %s", text)
	}
	if _, again := mint(t, "ann", "", time.Time{}); again.Equal(plain) || len(again.Reveal()) < 40 {
		t.Errorf("Mint = %q again, or something short", again.Reveal())
	}
	for _, name := range []string{"", ".", "-a", "a b", "a:b", "a/b", "ä", "a\n", strings.Repeat("a", 65)} {
		var bad *access.NameError
		if _, _, err := access.Mint(name, "", time.Time{}); !errors.As(err, &bad) {
			t.Errorf("Mint(%q) = %v, want a NameError", name, err)
		}
	}
	if _, _, err := access.Mint("ann", "a b", time.Time{}); err == nil {
		t.Error("Mint with a role that is no name = nil, want an error")
	}
}

func TestMayOpen(t *testing.T) {
	tests := []struct {
		network, address string
		want             bool
	}{
		{"unix", "/run/dockgate.sock", true},
		{"tcp", "127.0.0.1:8811", true},
		{"tcp", "127.8.9.1:8811", true},
		{"tcp", "[::1]:8811", true},
		{"tcp", "[::ffff:127.0.0.1]:8811", true},
		{"tcp", "0.0.0.0:8811", false},
		{"tcp", "[::]:8811", false},
		{"tcp", "192.168.1.2:8811", false},
		{"tcp", ":8811", false},
		{"tcp", "localhost:8811", false},
		{"tcp", "", false},
	}
	for _, tt := range tests {
		if got := access.MayOpen(tt.network, tt.address); got != tt.want {
			t.Errorf("MayOpen(%q, %q) = %v, want %v", tt.network, tt.address, got, tt.want)
		}
	}
}
