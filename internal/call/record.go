package call

import (
	"errors"
	"strings"
	"time"

	"github.com/dockgate/dockgate/internal/access"
	"github.com/dockgate/dockgate/internal/approval/consent"
	"github.com/dockgate/dockgate/internal/audit"
	"github.com/dockgate/dockgate/internal/fleet"
)

// A Recorder is the audit record.
type Recorder interface {
	Append(audit.Record) error
}

// decided records that a call was let through, or why not.
func (c *Caller) decided(r Request, order fleet.Order, err error) error {
	record := entry(r, audit.KindCall)
	record.Outcome = "allowed"
	if err != nil {
		record.Outcome, record.Code = "refused", Code(err)
		record.Detail["reason"] = cut(err.Error())
		if denies(err) {
			record.Kind = audit.KindDenial
		}
	} else {
		record.Detail["image"] = order.Spec.Image.Pin.Digest
	}
	return c.write(record, refused)
}

// denies reports that a person, a rule or a role said no.
func denies(err error) bool {
	var (
		denied   *consent.DeniedError
		disabled *DisabledError
		barred   *access.DeniedError
		roleless *access.RoleError
	)
	return errors.As(err, &denied) || errors.As(err, &disabled) || errors.As(err, &barred) || errors.As(err, &roleless)
}

// answered records how a call ended.
func (c *Caller) answered(r Request, result []byte, err error, took time.Duration) error {
	record := entry(r, audit.KindResult)
	record.Outcome, record.Code = "ok", Code(err)
	record.DurationUS, record.Bytes = took.Microseconds(), int64(len(result))
	switch {
	case err == nil:
	case isAnswer(err):
		record.Outcome = "error"
	default:
		record.Outcome = "failed"
		record.Detail["reason"] = cut(err.Error())
	}
	return c.write(record, withheld)
}

// entry begins the record of a request.
func entry(r Request, kind audit.Kind) audit.Record {
	return audit.Record{
		Kind: kind, Session: r.Session, Principal: r.Principal.ID, Server: cut(r.Server), Tool: cut(r.Item),
		Arguments: audit.Digest(r.Arguments),
		Detail:    map[string]string{"method": r.Method, "via": r.Via},
	}
}

// recordable is how long a text that others wrote may be in a record, in bytes.
// A record that is too long is refused.
const recordable = 1 << 10

// cut returns as much of a text as goes into a record.
func cut(text string) string {
	if len(text) <= recordable {
		return text
	}
	return strings.ToValidUTF8(text[:recordable], "") + "…"
}

// write writes a record. If that fails, the call is refused, or its answer
// withheld.
func (c *Caller) write(record audit.Record, done consequence) error {
	if err := c.Record.Append(record); err != nil {
		c.Logger.Error("audit record failed", "server", record.Server, "err", err)
		return &RecordError{Err: err, Withheld: done == withheld}
	}
	return nil
}

// A consequence is what a failed record leads to.
type consequence int

const (
	refused consequence = iota
	withheld
)
