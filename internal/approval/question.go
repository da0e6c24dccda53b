package approval

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/sandbox"
)

// A Question is something that a person has to decide. Its content never
// changes: other content is another question.
type Question struct {
	// ID is what people and logs say: the first eight hex digits of Digest.
	ID string `json:"id"`
	// Digest is over the server, the grant and the tools, so that asking the
	// same twice is one question.
	Digest      string        `json:"digest"`
	Server      string        `json:"server"`
	Kind        Kind          `json:"kind"`
	Grant       sandbox.Grant `json:"grant"`
	GrantDigest string        `json:"grant_digest"`
	// Previous is the grant that was approved last, for [KindChanged].
	Previous *sandbox.Grant `json:"previous,omitempty"`
	// Tools are what was added or changed, for [KindTools], sorted by name.
	Tools []ToolChange `json:"tools,omitempty"`
	// Call is the call that waits, for [KindCall].
	Call      *Call               `json:"call,omitempty"`
	Details   Details             `json:"details"`
	Asked     time.Time           `json:"asked"`
	Principal principal.Principal `json:"principal"`

	Progress Progress `json:"state"`
	// Decided, Channel and By are set once somebody decided.
	Decided time.Time           `json:"decided,omitzero"`
	Channel string              `json:"channel,omitempty"`
	By      principal.Principal `json:"by,omitzero"`
	// ForSession is set when a call was approved, and with it all others of
	// the tool in its session.
	ForSession bool `json:"for_session,omitempty"`
}

// A Kind is why a question is asked.
type Kind string

// The kinds of question.
const (
	KindFirst   Kind = "first"
	KindChanged Kind = "changed"
	KindExpired Kind = "expired"
	KindTools   Kind = "tools"
	// KindCall is one call of a tool, see [Book.TakeAnswer].
	KindCall Kind = "call"
)

// A Progress is how far a question got.
type Progress string

// The progress of a question.
const (
	ProgressPending  Progress = "pending"
	ProgressApproved Progress = "approved"
	ProgressDenied   Progress = "denied"
)

// Details help a person to recognize a server.
type Details struct {
	Title       string         `json:"title,omitempty"`
	Description string         `json:"description,omitempty"`
	Origin      catalog.Origin `json:"origin"`
}

// A ToolChange is a tool whose definition was not approved.
type ToolChange struct {
	Name string     `json:"name"`
	Kind ChangeKind `json:"kind"`
	// Before is the pinned definition; it is nil for [ToolAdded].
	Before json.RawMessage `json:"before,omitempty"`
	// After is the definition as the server sent it; Digest is its digest.
	After  json.RawMessage `json:"after"`
	Digest string          `json:"digest"`
}

// A ChangeKind is how a tool differs from what was approved.
type ChangeKind string

// The kinds of change. A tool that vanished is none: its pin stays.
const (
	ToolAdded   ChangeKind = "added"
	ToolChanged ChangeKind = "changed"
)

// identify fills in Digest and ID from the content.
func (q *Question) identify() {
	parts := []string{"grant", q.Server, q.GrantDigest}
	if q.Kind == KindCall && q.Call != nil {
		parts = []string{"call", q.Server, q.GrantDigest, q.Call.Tool, q.Call.Digest, q.Call.Session}
	}
	if q.Kind == KindTools {
		parts[0] = "tools"
		for _, c := range q.Tools {
			before := sha256.Sum256(c.Before)
			parts = append(parts, c.Name, string(c.Kind), hex.EncodeToString(before[:]), c.Digest)
		}
	}
	encoded, err := json.Marshal(parts)
	if err != nil {
		panic("approval: strings that do not encode: " + err.Error())
	}
	sum := sha256.Sum256(encoded)
	q.Digest = "sha256:" + hex.EncodeToString(sum[:])
	q.ID = hex.EncodeToString(sum[:4])
}

// holds reports whether q asks for exactly this definition of a tool.
func (q *Question) holds(name, digest string) bool {
	for _, c := range q.Tools {
		if c.Name == name && c.Digest == digest {
			return true
		}
	}
	return false
}

// Summary returns the question in one line for a person.
func (q *Question) Summary() string {
	switch q.Kind {
	case KindChanged:
		return fmt.Sprintf("server %q changed since it was approved", printable(q.Server))
	case KindExpired:
		return fmt.Sprintf("the approval of server %q expired", printable(q.Server))
	case KindTools:
		return fmt.Sprintf("server %q offers %s", printable(q.Server), countTools(q.Tools))
	case KindCall:
		return fmt.Sprintf("tool %q of server %q is to be called", printable(q.Call.Tool), printable(q.Server))
	default:
		return fmt.Sprintf("server %q wants to start", printable(q.Server))
	}
}

func countTools(changes []ToolChange) string {
	added, changed := 0, 0
	for _, c := range changes {
		if c.Kind == ToolAdded {
			added++
		} else {
			changed++
		}
	}
	switch {
	case changed == 0:
		return fmt.Sprintf("new tools: %d", added)
	case added == 0:
		return fmt.Sprintf("changed tools: %d", changed)
	default:
		return fmt.Sprintf("new tools: %d, changed tools: %d", added, changed)
	}
}

// Lines returns the whole question for a person: what the server is, and what
// it may do, or how that differs from what was approved. Nothing in it can
// move a terminal's cursor or reverse the direction of text.
func (q *Question) Lines() []string {
	lines := []string{q.Summary()}
	if q.Details.Title != "" {
		lines = append(lines, "title:     "+q.Details.Title)
	}
	if q.Details.Description != "" {
		lines = append(lines, "about:     "+q.Details.Description)
	}
	if q.Details.Origin.Catalog != "" {
		lines = append(lines, "catalog:   "+q.Details.Origin.Catalog)
	}
	switch {
	case q.Kind == KindCall:
		lines = append(lines, "arguments: "+q.Call.Arguments)
		if q.Call.Why != "" {
			lines = append(lines, "asked by:  "+q.Call.Why)
		}
	case q.Kind == KindTools:
		for _, c := range q.Tools {
			if c.Kind == ToolChanged {
				lines = append(lines, "- tool "+c.Name+": "+string(c.Before))
			}
			lines = append(lines, "+ tool "+c.Name+": "+string(c.After))
		}
	case q.Kind == KindChanged && q.Previous != nil:
		lines = append(lines, "what changed:")
		lines = append(lines, sandbox.DiffGrants(*q.Previous, q.Grant)...)
		lines = append(lines, "what it would be:")
		lines = append(lines, q.Grant.Lines()...)
	default:
		lines = append(lines, q.Grant.Lines()...)
	}
	for i := range lines {
		lines[i] = printable(lines[i])
	}
	return lines
}

// printable replaces what a terminal would obey or hide by its escape: a
// server's text must not be able to forge the question about itself.
func printable(text string) string {
	clean := func(r rune) bool { return r == ' ' || unicode.IsPrint(r) }
	if strings.IndexFunc(text, func(r rune) bool { return !clean(r) }) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if clean(r) {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, "\\u%04x", r)
		}
	}
	return b.String()
}
