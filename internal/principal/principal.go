// Package principal says who is calling: the identity that approvals,
// activations, quotas and audit records are kept for.
//
// It decides nothing. Whoever lets a caller in (standard input, a token, an
// issuer of tokens) makes the Principal; everyone else only passes it on.
package principal

// Local is the user who started the gateway and talks to it over standard
// input, or without a token where that is allowed.
var Local = Principal{ID: "local"}

// A Principal is one caller. The zero value is nobody and is refused. Two are
// the same caller with the same rights if they are equal.
type Principal struct {
	// ID is stable and unique within a state folder.
	ID string
	// Role is the name of the role that the credential gave; empty is what the
	// configuration gives to those who have none. It is not written down with
	// the ID: a caller may come with another role next time.
	Role string
}

// Known reports whether p names somebody.
func (p Principal) Known() bool { return p.ID != "" }

// String returns the ID.
func (p Principal) String() string { return p.ID }

// MarshalText returns the ID.
func (p Principal) MarshalText() ([]byte, error) { return []byte(p.ID), nil }

// UnmarshalText reads what MarshalText wrote.
func (p *Principal) UnmarshalText(text []byte) error {
	*p = Principal{ID: string(text)}
	return nil
}
