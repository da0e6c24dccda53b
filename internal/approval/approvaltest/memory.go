// Package approvaltest holds every store of approvals to one contract, and
// tests the book on each of them.
//
// [Run] is the suite. [Memory] is a store without a file that passes it, for
// tests of what stands on top of a book.
package approvaltest

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/dockgate/dockgate/internal/approval"
)

// A Memory is a store in memory. Several books may share one, as processes
// share a file. The zero value is empty.
type Memory struct {
	mu        sync.Mutex
	revision  int64
	approvals map[approval.Key]approval.Approval
	questions map[string]approval.Question
}

// Revision implements [approval.Store].
func (m *Memory) Revision(context.Context) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.revision, nil
}

// Load implements [approval.Store].
func (m *Memory) Load(context.Context) (approval.Content, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return approval.Content{
		Revision:  m.revision,
		Approvals: slices.Collect(maps.Values(m.approvals)),
		Questions: slices.Collect(maps.Values(m.questions)),
	}, nil
}

// Commit implements [approval.Store].
func (m *Memory) Commit(_ context.Context, revision int64, change approval.Change) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if revision != m.revision {
		return 0, approval.ErrConflict
	}
	if m.approvals == nil {
		m.approvals, m.questions = map[approval.Key]approval.Approval{}, map[string]approval.Question{}
	}
	for _, key := range change.DeleteApprovals {
		delete(m.approvals, key)
	}
	for _, digest := range change.DeleteQuestions {
		delete(m.questions, digest)
	}
	for _, a := range change.PutApprovals {
		m.approvals[a.Key()] = a
	}
	for _, q := range change.PutQuestions {
		m.questions[q.Digest] = q
	}
	m.revision++
	return m.revision, nil
}
