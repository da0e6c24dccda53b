// Package secret holds references to secrets, the places they come from, and
// a Value that never prints.
//
// A secret leaves this package only through [Value.Reveal], which the engine
// calls once, when it creates the container. Every other way a value could
// reach a log, an error, a plan or a file yields the mask.
package secret

import (
	"fmt"
	"log/slog"
)

// Mask is what every printed Value looks like.
const Mask = "******"

// A Value is a secret. The zero value is an absent one.
type Value struct {
	// A pointer, because fmt cannot call the methods of a Value in somebody's
	// unexported field, and prints what it finds there: an address.
	plain *string
}

// NewValue wraps a plain secret. An empty one is absent.
func NewValue(plain string) Value {
	if plain == "" {
		return Value{}
	}
	return Value{plain: &plain}
}

// Reveal returns the plain secret.
func (v Value) Reveal() string {
	if v.plain == nil {
		return ""
	}
	return *v.plain
}

// Set reports whether there is a secret.
func (v Value) Set() bool { return v.plain != nil }

// Equal reports whether both are the same secret.
func (v Value) Equal(other Value) bool { return v.Reveal() == other.Reveal() }

// String returns [Mask].
func (v Value) String() string { return Mask }

// GoString returns [Mask].
func (v Value) GoString() string { return Mask }

// Format writes [Mask] whatever the verb.
func (v Value) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(Mask)) }

// MarshalText returns [Mask].
func (v Value) MarshalText() ([]byte, error) { return []byte(Mask), nil }

// LogValue returns [Mask].
func (v Value) LogValue() slog.Value { return slog.StringValue(Mask) }
