package approval

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dockgate/dockgate/internal/sandbox"
)

// A snapshot is the content of the store, indexed for checks. It never
// changes once it is published; replaced is closed when a newer one is.
type snapshot struct {
	revision  int64
	approvals map[Key]*Approval
	// latest is the approval of each server that was decided last.
	latest    map[string]*Approval
	questions map[string]*Question
	// denied are the digests of the questions that were denied while this
	// book was open. It is kept apart from the questions' own progress,
	// because another gateway may have asked again since.
	denied      map[string]bool
	deniedGrant map[Key]string
	deniedTool  map[toolKey]string
	replaced    chan struct{}
}

type toolKey struct {
	Key
	name, digest string
}

// index makes a snapshot. Denials that are as old as forgiven says do not
// count; those that counted in before still do unless they were reversed.
func index(content Content, before *snapshot, forgiven map[string]time.Time) *snapshot {
	s := &snapshot{
		revision:    content.Revision,
		approvals:   make(map[Key]*Approval, len(content.Approvals)),
		latest:      make(map[string]*Approval, len(content.Approvals)),
		questions:   make(map[string]*Question, len(content.Questions)),
		denied:      map[string]bool{},
		deniedGrant: map[Key]string{},
		deniedTool:  map[toolKey]string{},
		replaced:    make(chan struct{}),
	}
	for i := range content.Approvals {
		a := &content.Approvals[i]
		s.approvals[a.Key()] = a
		if last := s.latest[a.Server]; last == nil || a.Decided.After(last.Decided) {
			s.latest[a.Server] = a
		}
	}
	for i := range content.Questions {
		q := &content.Questions[i]
		s.questions[q.Digest] = q
		old, wasOld := forgiven[q.Digest]
		switch q.Progress {
		case ProgressDenied:
			if wasOld && old.Equal(q.Decided) {
				continue
			}
		case ProgressPending:
			if before == nil || !before.denied[q.Digest] {
				continue
			}
		case ProgressApproved:
			continue
		}
		s.deny(q)
	}
	return s
}

func (s *snapshot) deny(q *Question) {
	if q.Kind == KindCall { // a denial is for one call
		return
	}
	s.denied[q.Digest] = true
	key := Key{q.Server, q.GrantDigest}
	if q.Kind != KindTools {
		s.deniedGrant[key] = q.ID
	}
	for _, c := range q.Tools {
		s.deniedTool[toolKey{key, c.Name, c.Digest}] = q.ID
	}
}

// content returns what s was made from, with a committed change applied.
func (s *snapshot) content(change Change, revision int64) Content {
	approvals, questions := maps.Clone(s.approvals), maps.Clone(s.questions)
	for _, key := range change.DeleteApprovals {
		delete(approvals, key)
	}
	for _, digest := range change.DeleteQuestions {
		delete(questions, digest)
	}
	for i := range change.PutApprovals {
		approvals[change.PutApprovals[i].Key()] = &change.PutApprovals[i]
	}
	for i := range change.PutQuestions {
		questions[change.PutQuestions[i].Digest] = &change.PutQuestions[i]
	}
	content := Content{Revision: revision}
	for _, a := range approvals {
		content.Approvals = append(content.Approvals, *a)
	}
	for _, q := range questions {
		content.Questions = append(content.Questions, *q)
	}
	return content
}

func (s *snapshot) grant(key Key, now time.Time) Verdict {
	a := s.approvals[key]
	if a != nil && !expired(a.Expires, now) {
		return Verdict{State: Approved}
	}
	if id, denied := s.deniedGrant[key]; denied {
		return Verdict{State: Denied, Question: id}
	}
	if a != nil {
		return Verdict{State: Expired}
	}
	if last := s.latest[key.Server]; last != nil {
		return Verdict{State: Changed, Previous: &last.Grant}
	}
	return Verdict{}
}

func (s *snapshot) tool(key Key, name, digest string, now time.Time) Verdict {
	a := s.approvals[key]
	if a == nil {
		return Verdict{}
	}
	if expired(a.Expires, now) {
		return Verdict{State: Expired}
	}
	pin, pinned := a.Tools[name]
	if pinned && pin.Digest == digest && !expired(pin.Expires, now) {
		return Verdict{State: Approved}
	}
	if id, denied := s.deniedTool[toolKey{key, name, digest}]; denied {
		return Verdict{State: Denied, Question: id}
	}
	switch {
	case !pinned:
		return Verdict{}
	case pin.Digest == digest:
		return Verdict{State: Expired}
	default:
		return Verdict{State: Changed}
	}
}

// toolQuestion returns the pending tools question of a key.
func (s *snapshot) toolQuestion(key Key) *Question {
	for _, q := range s.questions {
		if q.Kind == KindTools && q.Progress == ProgressPending && q.Server == key.Server && q.GrantDigest == key.GrantDigest {
			return q
		}
	}
	return nil
}

func (s *snapshot) sortedApprovals() []Approval {
	list := make([]Approval, 0, len(s.approvals))
	for _, a := range s.approvals {
		list = append(list, *a)
	}
	slices.SortFunc(list, func(a, b Approval) int {
		if byName := strings.Compare(a.Server, b.Server); byName != 0 {
			return byName
		}
		return a.Decided.Compare(b.Decided)
	})
	return list
}

func (s *snapshot) sortedQuestions(wanted []Progress) []Question {
	var list []Question
	for _, q := range s.questions {
		if len(wanted) == 0 || slices.Contains(wanted, q.Progress) {
			list = append(list, *q)
		}
	}
	slices.SortFunc(list, func(a, b Question) int {
		if byTime := a.Asked.Compare(b.Asked); byTime != 0 {
			return byTime
		}
		return strings.Compare(a.Digest, b.Digest)
	})
	return list
}

// newQuestion describes the question that a grant's verdict leads to.
func newQuestion(request Request, verdict Verdict, now time.Time) Question {
	q := Question{
		Server: request.Server, Kind: KindFirst, Grant: request.Grant, GrantDigest: request.Grant.Digest(),
		Details: request.Details, Asked: now, Principal: request.Principal, Progress: ProgressPending,
	}
	switch verdict.State {
	case Changed:
		q.Kind, q.Previous = KindChanged, clone(verdict.Previous)
	case Expired:
		q.Kind = KindExpired
	case Missing, Approved, Denied:
	}
	q.identify()
	return q
}

func clone(grant *sandbox.Grant) *sandbox.Grant {
	if grant == nil {
		return nil
	}
	copied := *grant
	return &copied
}
