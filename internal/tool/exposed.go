package tool

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// MaxExposed is the longest name a client sees. Several model APIs refuse
// longer tool names, or others than [A-Za-z0-9_-], and with them the whole
// request.
const MaxExposed = 64

const (
	separator  = "__"
	hashDigits = 8
)

// Exposed returns the name under which clients see a tool: "server__tool"
// where that is a legal name and can be read in one way only, else as much of
// it as is legal with a hash of the Ref. It depends on nothing but the Ref, so
// it never changes because another server comes or goes, and two Refs never
// share a name (but for a collision of 32 bits of SHA-256).
func (r Ref) Exposed() string {
	name := r.Server + separator + r.Name
	splitsOnce := !strings.Contains(r.Server, separator) && !strings.HasSuffix(r.Server, "_")
	if splitsOnce && legal(name) && !looksHashed(name) {
		return name
	}
	return hashed(name, r)
}

// Bare returns the tool's own name where it is legal for a client, else as
// much of it as is legal with a hash of the Ref. Bare names of two servers can
// be the same; whoever lists them decides who keeps it.
func (r Ref) Bare() string {
	if legal(r.Name) && !looksHashed(r.Name) {
		return r.Name
	}
	return hashed(r.Name, r)
}

func hashed(name string, r Ref) string {
	// The NUL keeps ("a", "b/c") and ("a/b", "c") apart.
	sum := sha256.Sum256([]byte(r.Server + "\x00" + r.Name))
	suffix := "_" + hex.EncodeToString(sum[:])[:hashDigits]
	var b strings.Builder
	for _, c := range []byte(name) {
		if b.Len() == MaxExposed-len(suffix) {
			break
		}
		if !legalByte(c) {
			c = '_'
		}
		b.WriteByte(c)
	}
	return b.String() + suffix
}

// looksHashed reports whether a plain name could be taken for a hashed one.
func looksHashed(name string) bool {
	cut := len(name) - hashDigits - 1
	if cut < 0 || name[cut] != '_' {
		return false
	}
	_, err := hex.DecodeString(name[cut+1:])
	return err == nil
}

func legal(name string) bool {
	if name == "" || len(name) > MaxExposed {
		return false
	}
	for _, c := range []byte(name) {
		if !legalByte(c) {
			return false
		}
	}
	return true
}

func legalByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-'
}
