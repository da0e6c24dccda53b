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

// Changed returns a channel that is closed when anything was decided, asked or
// pinned since.
func (b *Book) Changed() <-chan struct{} { return b.current.Load().replaced }
