package daemon

import (
	"context"
	"errors"
	"fmt"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/approval/consent"
	"github.com/dockgate/dockgate/internal/call"
	"github.com/dockgate/dockgate/internal/docker/owner"
	"github.com/dockgate/dockgate/internal/plan"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/sandbox"
)

// Ask records the question that stands before the start of a planned server,
// and returns it for somebody to answer; nil if the plan is approved. It waits
// for nobody.
func (d *Daemon) Ask(ctx context.Context, who principal.Principal, made plan.Plan) (*approval.Question, error) {
	err := consent.New(d.Book, d.Logger).Require(ctx, call.Question(who, made), consent.Person{}, 0)
	var pending *consent.PendingError
	if !errors.As(err, &pending) {
		return nil, err
	}
	for _, question := range d.Book.Questions(approval.ProgressPending) {
		if question.ID == pending.ID {
			return &question, nil
		}
	}
	return nil, err
}

// Pending returns the open questions about a server, or the one with that id,
// oldest first.
func (d *Daemon) Pending(name string) []approval.Question {
	var found []approval.Question
	for _, question := range d.Book.Questions(approval.ProgressPending) {
		if question.Server == name || question.ID == name {
			found = append(found, question)
		}
	}
	return found
}

// An Update is what the references of a server's images stand for now.
type Update struct {
	// Images are what changed and what did not; a remote server has none.
	Images  []Renewed
	Plan    plan.Plan
	Verdict approval.Verdict
	// Changes are the differences of the grant to the one that was approved
	// last or, if none was, to the one before, as [sandbox.DiffGrants] has them.
	Changes []string
}

// A Renewed image is one whose reference was resolved anew.
type Renewed struct {
	// Before is the zero Image if the reference was never resolved.
	Before, After sandbox.Image
}

// Update resolves the images of a server anew and plans it with what was found.
// It approves nothing.
func (d *Daemon) Update(ctx context.Context, who principal.Principal, server string, progress func(plan.Progress)) (Update, error) {
	old, err := d.Planner.Plan(ctx, who, server)
	known := err == nil
	if err != nil && !plan.Unresolved(err) {
		return Update{}, err
	}
	entry, err := d.Catalog().Server(server)
	if err != nil {
		return Update{}, err
	}
	if progress == nil {
		progress = func(plan.Progress) {}
	}
	var u Update
	for _, source := range d.Planner.Sources(entry) {
		var r Renewed
		if r.Before, r.After, err = d.Images.Update(ctx, source, progress); err != nil {
			return Update{}, fmt.Errorf("server %q: %w", server, err)
		}
		u.Images = append(u.Images, r)
	}
	d.Planner.ForgetAll() // other servers may use the same image
	if u.Plan, err = d.Planner.Plan(ctx, who, server); err != nil {
		return Update{}, err
	}
	u.Verdict = d.Book.Check(approval.Key{Server: server, GrantDigest: u.Plan.GrantDigest})
	switch {
	case u.Verdict.Previous != nil:
		u.Changes = sandbox.DiffGrants(*u.Verdict.Previous, u.Plan.Grant)
	case known:
		u.Changes = sandbox.DiffGrants(old.Grant, u.Plan.Grant)
	}
	return u, nil
}

// Running returns the containers of this state folder; of the named servers
// only, if there are names.
func (d *Daemon) Running(ctx context.Context, servers ...string) ([]owner.Container, error) {
	all, err := d.Engine.Running(ctx)
	if err != nil || len(servers) == 0 {
		return all, err
	}
	var found []owner.Container
	for _, container := range all {
		for _, server := range servers {
			if container.Server == server {
				found = append(found, container)
			}
		}
	}
	return found, nil
}
