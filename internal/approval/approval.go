// Package approval keeps what a person approved: which server may start with
// which grant, and which of its tools may be called.
//
// It decides two questions: may this grant start, and may this tool be called.
// It refuses everything that nobody approved, and whatever changed since: a
// grant with another digest, a tool with another definition. Both are held
// until a person has seen the difference. How they come to see it is up to
// package consent.
//
// It guarantees that nothing becomes approved but through a [Decision] that
// names its channel and is recorded before it takes effect, and that an
// approval which expired or was revoked stops counting in every process that
// shares the store, at the latest one poll later.
package approval

import (
	"encoding/json"
	"time"

	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/sandbox"
)

// An Approval says that a server may start with one exact grant, and which of
// its tools may be called. A server has one for each grant that was approved,
// so that two projects with other settings do not undo each other's.
type Approval struct {
	Server      string        `json:"server"`
	Grant       sandbox.Grant `json:"grant"`
	GrantDigest string        `json:"grant_digest"`
	// Tools are the pinned definitions by name. It is nil until the server's
	// first listing, which is pinned by the approval of the grant.
	Tools   map[string]Pin `json:"tools"`
	Decided time.Time      `json:"decided"`
	// Expires is zero when the approval holds until it is revoked.
	Expires time.Time `json:"expires,omitzero"`
	// Channel is how the person was reached: "terminal", "elicitation", or
	// [ChannelAll] when nobody was.
	Channel string              `json:"channel"`
	By      principal.Principal `json:"by"`
}

// A Key identifies an approval.
type Key struct {
	Server      string
	GrantDigest string
}

// Key returns the approval's key.
func (a Approval) Key() Key { return Key{a.Server, a.GrantDigest} }

// A Pin is one approved tool definition.
type Pin struct {
	// Digest is that of [tool.Definition.Digest].
	Digest string `json:"digest"`
	// JSON is the definition as the server sent it.
	JSON json.RawMessage `json:"json"`
	// Expires is set when the tool was approved later than its server, and
	// for a limited time.
	Expires time.Time `json:"expires,omitzero"`
}

func expired(expires, now time.Time) bool { return !expires.IsZero() && !now.Before(expires) }

// A State is what the book says of a grant or a tool.
type State int

// The states. The zero value approves nothing.
const (
	// Missing is a grant or a tool that nobody decided on.
	Missing State = iota
	Approved
	// Changed is one whose server or name was approved with other content.
	Changed
	// Expired is one whose approval ended by its own time limit.
	Expired
	// Denied is one that a person denied while this gateway ran.
	Denied
)

// String returns the state as a word.
func (s State) String() string {
	switch s {
	case Approved:
		return "approved"
	case Changed:
		return "changed"
	case Expired:
		return "expired"
	case Denied:
		return "denied"
	case Missing:
		return "missing"
	default:
		return "unknown"
	}
}

// A Verdict answers a check.
type Verdict struct {
	State State
	// Previous is what was approved last, for [Changed] grants.
	Previous *sandbox.Grant
	// Question is the id of the denied question, for [Denied].
	Question string
}
