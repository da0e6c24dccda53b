package access

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"regexp"
	"time"

	"github.com/dockgate/dockgate/internal/secret"
)

// A Digest is the SHA-256 of a token. A token has 256 random bits, so nobody
// finds it by trying, and a slower hash would protect nothing.
type Digest [sha256.Size]byte

// DigestOf returns the digest of a token.
func DigestOf(plain string) Digest { return sha256.Sum256([]byte(plain)) }

// A Token is what is kept of one that this gateway made.
type Token struct {
	// Name is also the ID of the principal that comes with it.
	Name string `json:"name"`
	// Role is a role of the configuration; empty is the default one.
	Role    string    `json:"role,omitempty"`
	Created time.Time `json:"created"`
	// Expires is when it stops working; zero is never.
	Expires time.Time `json:"expires,omitzero"`
	Digest  Digest    `json:"-"`
}

// Expired reports whether a token is past its time.
func (t Token) Expired(now time.Time) bool { return !t.Expires.IsZero() && !now.Before(t.Expires) }

// tokenPrefix makes a token known to those who search files for secrets.
const tokenPrefix = "dockgate_"

// Mint makes a token. The plain one is nowhere but in what Mint returns. It
// refuses a name or a role that is not one, see [CheckName].
func Mint(name, role string, expires time.Time) (Token, secret.Value, error) {
	if err := CheckName(name); err != nil {
		return Token{}, secret.Value{}, err
	}
	if role != "" {
		if err := CheckName(role); err != nil {
			return Token{}, secret.Value{}, fmt.Errorf("role: %w", err)
		}
	}
	var random [32]byte
	_, _ = rand.Read(random[:]) // never fails, says its documentation
	plain := tokenPrefix + base64.RawURLEncoding.EncodeToString(random[:])
	made := Token{Name: name, Role: role, Created: time.Now().UTC(), Digest: DigestOf(plain)}
	if !expires.IsZero() {
		made.Expires = expires.UTC()
	}
	return made, secret.NewValue(plain), nil
}

// find returns the token with a digest. It takes the same time for every
// digest, so that an answer's time tells nothing about how close one was.
func find(tokens []Token, digest Digest) (found Token, ok bool) {
	at := -1
	for i := range tokens {
		at = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(tokens[i].Digest[:], digest[:]), i, at)
	}
	if at < 0 {
		return Token{}, false
	}
	return tokens[at], true
}

// A NameError is a name that no token and no role can have.
type NameError struct{ Name string }

// Error says which names there can be.
func (e *NameError) Error() string {
	return fmt.Sprintf("%q is no name: want 1 to 64 of a-z, A-Z, 0-9, dot, dash and underscore, the first a letter or a digit", e.Name)
}

// CheckName returns a [*NameError] for what cannot be the name of a token or a
// role. A name has no colon, which callers from an issuer have in theirs.
func CheckName(name string) error {
	if !regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`).MatchString(name) {
		return &NameError{Name: name}
	}
	return nil
}

// A TokenExistsError is a token that cannot be made because there is one with
// its name.
type TokenExistsError struct{ Name string }

// Error names it.
func (e *TokenExistsError) Error() string { return fmt.Sprintf("there is a token %q already", e.Name) }

// Hint says how to replace it.
func (e *TokenExistsError) Hint() string {
	return "take another name, or revoke it first with: dockgate token revoke " + e.Name
}

// An UnknownTokenError is a token that does not exist.
type UnknownTokenError struct{ Name string }

// Error names it.
func (e *UnknownTokenError) Error() string { return fmt.Sprintf("there is no token %q", e.Name) }

// Hint says where they are listed.
func (e *UnknownTokenError) Hint() string { return "list the tokens with: dockgate token ls" }
