package daemon

import (
	"context"
	"strings"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/audit"
	"github.com/dockgate/dockgate/internal/fleet"
)

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
