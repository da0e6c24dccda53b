package call_test

import (
	"errors"
	"testing"
	"time"

	"github.com/dockgate/dockgate/internal/access"
	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/approval/consent"
	"github.com/dockgate/dockgate/internal/audit"
	"github.com/dockgate/dockgate/internal/call"
	"github.com/dockgate/dockgate/internal/fleet"
	"github.com/dockgate/dockgate/internal/principal"
)

// by is a request of a caller with a role.
func by(role string, r call.Request) call.Request {
	r.Principal = principal.Principal{ID: "ann", Role: role}
	return r
}

// A server that the caller's role does not have is refused whichever way a
// call comes, and the refusal is recorded. Nothing is pulled, asked or started.
func TestRoleDenies(t *testing.T) {
	inWorld(t, approval.ModeAsk, func(t *testing.T, w *world) {
		servers, err := access.CompileNames([]string{"s*"})
		check(t, err)
		roles := access.Roles{Each: map[string]*access.Role{
			"reader": {Name: "reader", Catalogs: access.AnyName(), Servers: servers, Place: "config.yaml:3"},
		}}
		w.caller.Permit = func(who principal.Principal, server string) error {
			return roles.Permit(who, w.caller.Planner.Catalog(), server)
		}
		clear(w.present)
		for _, r := range []call.Request{
			by("reader", request("git", "echo")), by("gone", request("git", "echo")), by("", request("git", "echo")),
			by("reader", call.Request{Client: request("git", "").Client, Server: "git", Method: "prompts/get", Item: "p"}),
			by("reader", call.Request{Client: request("git", "").Client, Server: "git", Method: "resources/read", Item: "x:y"}),
			by("reader", request("nowhere", "echo")),
		} {
			w.fails(r, access.CodeDenied)
		}
		ready := by("reader", request("git", ""))
		if err := w.caller.Ready(t.Context(), ready); call.Code(err) != access.CodeDenied {
			t.Errorf("Ready() = %v, want %s", err, access.CodeDenied)
		}
		w.caller.Warm(t.Context(), ready.Client, "git")
		if w.ensured > 0 || len(w.book.Questions()) > 0 {
			t.Errorf("%d images were looked for, and %d questions asked", w.ensured, len(w.book.Questions()))
		}
		w.expectStarted(0)
		for _, record := range w.records() {
			if record.Kind != audit.KindDenial || record.Code != access.CodeDenied || record.Principal != "ann" || record.Detail["reason"] == "" {
				t.Errorf("recorded %+v, want the denial", record)
			}
		}
		if n := len(w.records()); n != 7 {
			t.Errorf("%d records, want 7", n)
		}
		var denied *access.DeniedError
		if err := w.caller.MayUse(ready.Principal, "git"); !errors.As(err, &denied) {
			t.Errorf("MayUse(git) = %v, want a DeniedError", err)
		}
		w.present["raw"] = true
		w.answers(answering(by("owner", request("git", "echo")), approval.Approve))
	})
}

// A role's quota holds for its callers.
func TestRoleBounds(t *testing.T) {
	inBoundWorld(t, fleet.Quota{}, func(t *testing.T, w *world) {
		w.caller.Bound = func(who principal.Principal) (fleet.Quota, time.Duration) {
			if who.Role == "small" {
				return fleet.Quota{Memory: fleet.Bound{Max: 1 << 20, Place: "config.yaml"}}, time.Second
			}
			return fleet.Quota{}, 0
		}
		w.fails(by("small", request("git", "echo")), call.CodeQuota)
		w.answers(by("large", request("git", "echo")))
	})
}

// What a server may do is decided for everybody, and so not by every caller.
func TestRoleApproves(t *testing.T) {
	inWorld(t, approval.ModeAsk, func(t *testing.T, w *world) {
		w.caller.Approver = func(who principal.Principal) bool { return who.Role == "owner" }
		r := answering(request("git", "echo"), approval.Approve)
		w.fails(by("reader", r), consent.CodePending)
		w.expectStarted(0)
		w.answers(by("owner", r))
		w.list(definition("echo", ""), definition("fresh", ""))
		w.stop("git")
		w.answers(by("owner", r))
		w.fails(by("reader", answering(request("git", "fresh"), approval.Approve)), consent.CodePending)
		w.answers(by("owner", answering(request("git", "fresh"), approval.Approve)))
		w.answers(by("reader", request("git", "fresh")))
	})
}
