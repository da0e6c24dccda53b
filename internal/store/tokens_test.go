package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/access"
)

func TestTokens(t *testing.T) {
	dir := t.TempDir()
	one, two := open(t, dir), open(t, dir)
	mint := func(name, role string, expires time.Time) access.Token {
		t.Helper()
		made, _, err := access.Mint(name, role, expires)
		if err != nil {
			t.Fatalf("Mint(%q) = %v", name, err)
		}
		return made
	}
	ci, laptop := mint("ci", "reader", time.Now().Add(time.Hour)), mint("laptop", "", time.Time{})
	for _, token := range []access.Token{laptop, ci} {
		before, err := two.TokenRevision(t.Context())
		if err != nil {
			t.Fatalf("TokenRevision = %v", err)
		}
		if err := one.AddToken(t.Context(), token); err != nil {
			t.Fatalf("AddToken(%q) = %v", token.Name, err)
		}
		if after, err := two.TokenRevision(t.Context()); err != nil || after == before {
			t.Errorf("TokenRevision after AddToken = %d, %v, want another than %d", after, err, before)
		}
	}
	var exists *access.TokenExistsError
	if err := two.AddToken(t.Context(), mint("ci", "owner", time.Time{})); !errors.As(err, &exists) || exists.Name != "ci" || exists.Hint() == "" {
		t.Errorf("AddToken of a name that is taken = %v, want a TokenExistsError", err)
	}
	got, err := two.Tokens(t.Context())
	if diff := cmp.Diff([]access.Token{ci, laptop}, got); err != nil || diff != "" {
		t.Errorf("Tokens = %v (-want +got):\n%s", err, diff)
	}
	if err := one.DeleteToken(t.Context(), "ci"); err != nil {
		t.Errorf("DeleteToken = %v", err)
	}
	var unknown *access.UnknownTokenError
	if err := two.DeleteToken(t.Context(), "ci"); !errors.As(err, &unknown) || unknown.Hint() == "" {
		t.Errorf("DeleteToken of what is gone = %v, want an UnknownTokenError", err)
	}
	got, err = two.Tokens(t.Context())
	if diff := cmp.Diff([]access.Token{laptop}, got); err != nil || diff != "" {
		t.Errorf("Tokens = %v (-want +got):\n%s", err, diff)
	}
}
