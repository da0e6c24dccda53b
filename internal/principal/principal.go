// Package principal says who is calling: the identity that approvals,
// activations, quotas and audit records are kept for.
//
// It decides nothing. Whoever lets a caller in (standard input, later a token
// or OIDC) makes the Principal; everyone else only passes it on.
package principal

// Local is the user who started the gateway and talks to it over standard
// input. It is the only principal until the gateway serves HTTP.
var Local = Principal{ID: "local"}

// A Principal is one caller. The zero value is nobody and is refused.
type Principal struct {
	// ID is stable and unique within a state folder.
	ID string
}

// Known reports whether p names somebody.
func (p Principal) Known() bool { return p.ID != "" }

// String returns the ID.
func (p Principal) String() string { return p.ID }

// MarshalText returns the ID.
func (p Principal) MarshalText() ([]byte, error) { return []byte(p.ID), nil }

// UnmarshalText reads what MarshalText wrote.
func (p *Principal) UnmarshalText(text []byte) error {
	p.ID = string(text)
	return nil
}
