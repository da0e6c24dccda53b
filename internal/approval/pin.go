package approval

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dockgate/dockgate/internal/tool"
)

// ErrNotApproved is what is returned for a grant that is not approved (any
// more).
var ErrNotApproved = errors.New("the server is not approved")

// Pin compares a listing with what is approved, and returns the tools that
// are held, sorted by name. The first listing under an approval is pinned
// whole. Later, a tool that is new or changed is held alone; a tool that is
// not listed any more stays pinned.
//
// What is held becomes the server's one pending question, less what was
// denied already. Listings may differ between sessions, so a held tool that
// this listing lacks stays in the question.
//
// [ModeAll] approves what would be held; [ModePinned] asks nothing.
func (b *Book) Pin(ctx context.Context, request Request, listed []tool.Definition) ([]ToolChange, error) {
	key := request.Key()
	if b.options.Record == nil {
		return nil, errNoRecord
	}
	pins := make(map[string]Pin, len(listed))
	for _, d := range listed {
		pins[d.Name] = Pin{Digest: d.Digest(), JSON: d.JSON}
	}
	if len(b.compare(key, pins)) == 0 && b.settled(key, pins) {
		return nil, nil
	}
	var held []ToolChange
	err := b.change(ctx, func(s *snapshot) (Change, []Event, error) {
		held = nil
		a := s.approvals[key]
		if a == nil || expired(a.Expires, b.options.Now()) {
			return Change{}, nil, ErrNotApproved
		}
		if a.Tools == nil {
			pinned := *a
			pinned.Tools = pins
			event := Event{
				Time: b.now(), Action: ActionPinned, Server: key.Server, GrantDigest: key.GrantDigest,
				Tools: names(pins), Channel: a.Channel, By: a.By.String(),
			}
			return Change{PutApprovals: []Approval{pinned}}, []Event{event}, nil
		}
		held = b.differences(s, key, pins)
		if b.options.Mode == ModePinned {
			return Change{}, nil, nil
		}
		return b.toolsQuestion(s, request, pins, held), nil, nil
	})
	if err != nil {
		return nil, fmt.Errorf("pin tools of %q: %w", request.Server, err)
	}
	if b.options.Mode == ModeAll && len(held) > 0 {
		if err := b.approveTools(ctx, request); err != nil {
			return nil, err
		}
		return b.compare(key, pins), nil
	}
	return held, nil
}

func names(pins map[string]Pin) []string { return slices.Sorted(maps.Keys(pins)) }

// compare returns what of a listing is held, by the current snapshot.
func (b *Book) compare(key Key, listed map[string]Pin) []ToolChange {
	s := b.current.Load()
	if s.approvals[key] == nil {
		return nil
	}
	return b.differences(s, key, listed)
}

// settled reports that a listing holds nothing new, so that nothing needs to
// be written.
func (b *Book) settled(key Key, listed map[string]Pin) bool {
	s := b.current.Load()
	a := s.approvals[key]
	if a == nil || a.Tools == nil || expired(a.Expires, b.options.Now()) {
		return false
	}
	q := s.toolQuestion(key)
	if q == nil {
		return true
	}
	return !slices.ContainsFunc(q.Tools, func(c ToolChange) bool { _, again := listed[c.Name]; return again })
}

// differences returns the listed tools that are not approved as listed.
func (b *Book) differences(s *snapshot, key Key, listed map[string]Pin) []ToolChange {
	now := b.options.Now()
	approved := s.approvals[key].Tools
	var held []ToolChange
	for name, pin := range listed {
		if s.tool(key, name, pin.Digest, now).State == Approved {
			continue
		}
		change := ToolChange{Name: name, Kind: ToolAdded, After: pin.JSON, Digest: pin.Digest}
		if before, pinned := approved[name]; pinned {
			change.Kind, change.Before = ToolChanged, before.JSON
		}
		held = append(held, change)
	}
	sortChanges(held)
	return held
}

func sortChanges(changes []ToolChange) {
	slices.SortFunc(changes, func(a, b ToolChange) int { return strings.Compare(a.Name, b.Name) })
}

// toolsQuestion brings the pending question of a server up to date with a
// listing.
func (b *Book) toolsQuestion(s *snapshot, request Request, listed map[string]Pin, held []ToolChange) Change {
	key := request.Key()
	var asked []ToolChange
	for _, c := range held {
		if _, denied := s.deniedTool[toolKey{key, c.Name, c.Digest}]; !denied {
			asked = append(asked, c)
		}
	}
	before := s.toolQuestion(key)
	if before != nil {
		for _, c := range before.Tools {
			if _, again := listed[c.Name]; !again {
				asked = append(asked, c)
			}
		}
	}
	sortChanges(asked)
	var change Change
	q := Question{
		Server: key.Server, Kind: KindTools, Grant: s.approvals[key].Grant, GrantDigest: key.GrantDigest,
		Tools: asked, Details: request.Details, Asked: b.now(), Principal: request.Principal, Progress: ProgressPending,
	}
	q.identify()
	if before != nil && before.Digest == q.Digest {
		return change
	}
	if before != nil {
		change.DeleteQuestions = append(change.DeleteQuestions, before.Digest)
	}
	if len(asked) > 0 {
		change.PutQuestions = append(change.PutQuestions, q)
		change.DeleteQuestions = append(change.DeleteQuestions, b.outdated(s)...)
	}
	return change
}

// approveTools approves the pending question of a server under [ModeAll].
func (b *Book) approveTools(ctx context.Context, request Request) error {
	q := b.current.Load().toolQuestion(request.Key())
	if q == nil {
		return nil
	}
	return b.Decide(ctx, *q, Decision{Answer: Approve, Channel: ChannelAll, By: request.Principal})
}
