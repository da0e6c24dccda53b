package daemon

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/audit"
	"github.com/dockgate/dockgate/internal/fleet"
)

// maxWriters bounds how many processes of one state folder keep records at once.
const maxWriters = 100

// A Record is the audit record of this process. It begins with its first
// entry, because commands that only look leave no trace, or with Open.
type Record struct {
	// Dir is the folder of the record.
	Dir string

	mu     sync.Mutex
	writer *audit.Writer // nil before the first entry
	closed bool
}

// Open begins the record under the first name that no other process of this
// state folder uses now.
func (r *Record) Open() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.open()
}

func (r *Record) open() error {
	if r.closed {
		return audit.ErrClosed
	}
	for n := 1; r.writer == nil; n++ {
		writer, err := audit.Open(audit.Options{Dir: r.Dir, Gateway: fmt.Sprintf("gateway-%d", n)})
		var locked *audit.LockedError
		if errors.As(err, &locked) && n < maxWriters {
			continue
		}
		if err != nil {
			return err
		}
		r.writer = writer
	}
	return nil
}

// Append implements [call.Recorder].
func (r *Record) Append(entry audit.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.open(); err != nil {
		return err
	}
	return r.writer.Append(entry)
}

// Close ends the record.
func (r *Record) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	if r.writer == nil {
		return nil
	}
	return r.writer.Close()
}

// recordDecision writes what a person decided into the audit record.
func (d *Daemon) recordDecision(_ context.Context, e approval.Event) error {
	kinds := map[approval.Action]audit.Kind{
		approval.ActionDenied:  audit.KindDenial,
		approval.ActionRevoked: audit.KindRevocation,
	}
	kind, ok := kinds[e.Action]
	if !ok {
		kind = audit.KindApproval
	}
	detail := map[string]string{"channel": e.Channel, "grant": e.GrantDigest}
	if len(e.Tools) > 0 {
		detail["tools"] = strings.Join(e.Tools, " ")
	}
	if e.Call != "" {
		detail["arguments"], detail["for"] = e.Call, "one call"
		if e.ForSession {
			detail["for"] = "session"
		}
	}
	if e.Question != "" {
		detail["question"] = e.Question
	}
	return d.Audit.Append(audit.Record{
		Kind: kind, Server: e.Server, Principal: e.By, Outcome: string(e.Action), Detail: detail,
	})
}

// recordEvent writes the start or the end of a server into the audit record.
func (d *Daemon) recordEvent(e fleet.Event) error {
	kind := audit.KindStop
	if strings.HasPrefix(e.Kind, "start") {
		kind = audit.KindStart
	}
	detail := map[string]string{"container": e.Container, "image": e.Image, "scope": e.Scope}
	for name, value := range detail {
		if value == "" {
			delete(detail, name)
		}
	}
	if e.Err != nil {
		detail["reason"] = e.Err.Error()
	}
	return d.Audit.Append(audit.Record{
		Kind: kind, Server: e.Server, Outcome: e.Kind, DurationUS: e.Duration.Microseconds(), Detail: detail,
	})
}
