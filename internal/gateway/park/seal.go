package park

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strings"
	"time"

	"github.com/dockgate/dockgate/internal/principal"
)

// A Sealed state is what a client keeps between the rounds of a call that does
// not go on meanwhile.
type Sealed struct {
	// Principal and Same are whose and which request it belongs to.
	Principal principal.Principal
	Same      string
	// Server is the server that the request goes to.
	Server string
	// State is the server's own; nil if the request is just to be made again.
	State *string
}

const (
	sealPrefix = "dockgate.state:"
	stampSize  = 8
	withState  = "s"
	withNone   = "n"
)

// A Seal closes states so that they come back as they were, from the principal
// that got them, for the same request, while this gateway runs. It keeps
// nothing.
type Seal struct{ key []byte }

// NewSeal returns a Seal with a key of its own.
func NewSeal() Seal {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // never fails
	return Seal{key: key}
}

// IsSealed reports whether a state is, or looks like, a sealed one.
func IsSealed(state string) bool { return strings.HasPrefix(state, sealPrefix) }

// Close returns a state as the client gets it.
func (s Seal) Close(sealed Sealed) string {
	kind, inner := withNone, ""
	if sealed.State != nil {
		kind, inner = withState, *sealed.State
	}
	body := binary.BigEndian.AppendUint64(nil, uint64(time.Now().Add(TTL).Unix())) //nolint:gosec // after 1970
	body = append(body, kind+inner...)
	whole := append(s.sum(sealed, body), body...)
	return sealPrefix + base64.RawURLEncoding.EncodeToString(whole)
}

// Open returns what was closed, if it is for this request and not too old.
func (s Seal) Open(state string, expected Sealed) (Sealed, error) {
	encoded, _ := strings.CutPrefix(state, sealPrefix)
	whole, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil || len(whole) < sha256.Size+stampSize+len(withNone) {
		return Sealed{}, refuse("requestState is not one of this gateway's")
	}
	sum, body := whole[:sha256.Size], whole[sha256.Size:]
	if !hmac.Equal(sum, s.sum(expected, body)) {
		return Sealed{}, refuse("requestState does not belong to this request")
	}
	if time.Now().Unix() > int64(binary.BigEndian.Uint64(body)) { //nolint:gosec // as it was written
		return Sealed{}, refuse("requestState is too old; send the request without it")
	}
	kind, inner := string(body[stampSize:stampSize+1]), string(body[stampSize+1:])
	if kind == withState {
		expected.State = &inner
	}
	return expected, nil
}

// sum authenticates a body together with what it is bound to.
func (s Seal) sum(bound Sealed, body []byte) []byte {
	mac := hmac.New(sha256.New, s.key)
	for _, part := range []string{bound.Principal.ID, bound.Same, bound.Server, string(body)} {
		mac.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		mac.Write([]byte(part))
	}
	return mac.Sum(nil)
}
