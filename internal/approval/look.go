package approval

import "encoding/json"

// Pinned returns the approved definition of a tool of a server that runs under
// a grant, or nil if there is none.
func (b *Book) Pinned(key Key, name string) json.RawMessage {
	s := b.current.Load()
	a := s.approvals[key]
	if a == nil || expired(a.Expires, b.now()) {
		return nil
	}
	pin, ok := a.Tools[name]
	if !ok || expired(pin.Expires, b.now()) {
		return nil
	}
	return pin.JSON
}

// PinnedNames returns the names of the tools that have an approved definition,
// sorted.
func (b *Book) PinnedNames(key Key) []string {
	a := b.current.Load().approvals[key]
	if a == nil {
		return nil
	}
	return names(a.Tools)
}

// Changed returns a channel that is closed when anything was decided, asked or
// pinned since.
func (b *Book) Changed() <-chan struct{} { return b.current.Load().replaced }

// Listed reports whether the tools of a server that runs under a grant were
// pinned yet.
func (b *Book) Listed(key Key) bool {
	a := b.current.Load().approvals[key]
	return a != nil && a.Tools != nil
}

// Question returns the question with a digest; ok is false if there is none.
func (b *Book) Question(digest string) (q Question, ok bool) {
	if found := b.current.Load().questions[digest]; found != nil {
		return *found, true
	}
	return Question{}, false
}

// ToolQuestion returns the pending question about exactly this definition of a
// tool of a server that runs under a grant; ok is false if there is none.
func (b *Book) ToolQuestion(key Key, name, digest string) (q Question, ok bool) {
	if found := b.current.Load().toolQuestion(key); found != nil && found.holds(name, digest) {
		return *found, true
	}
	return Question{}, false
}

// Mode is what happens to what nobody decided on.
func (b *Book) Mode() Mode { return b.options.Mode }
