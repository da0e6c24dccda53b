package call_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/approval/consent"
	"github.com/dockgate/dockgate/internal/audit"
	"github.com/dockgate/dockgate/internal/call"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/rules"
	"github.com/dockgate/dockgate/internal/tool"
)

// rule has the caller keep rules, a YAML list.
func (w *world) rule(list string) {
	w.t.Helper()
	var node yaml.Node
	check(w.t, yaml.Unmarshal([]byte(list), &node))
	set, err := rules.Parse("rules.yaml", "toolRules", *node.Content[0])
	check(w.t, err)
	w.caller.Rules = func(principal.Principal) rules.Rules { return set }
}

// A disabled tool is not called, whichever way a call comes, and nothing is
// pulled, asked or started for it.
func TestDisabled(t *testing.T) {
	inWorld(t, approval.ModeAsk, func(t *testing.T, w *world) {
		w.rule(`[{pattern: ['*other*'], enabled: false}]`)
		clear(w.present)
		for _, via := range []string{"direct", "execute_tool", "command line"} {
			r := request("git", "other")
			r.Via = via
			err := w.failure(r, call.CodeDisabled)
			var disabled *call.DisabledError
			if !errors.As(err, &disabled) || !strings.Contains(err.Error(), "rule 1 (rules.yaml:1) disables it") || !strings.Contains(disabled.Hint(), "dockgate explain git other") {
				t.Errorf("Do() = %v, want the rule and how to see more", err)
			}
		}
		if w.ensured > 0 || len(w.book.Questions()) > 0 {
			t.Errorf("%d images were looked for, and %d questions asked", w.ensured, len(w.book.Questions()))
		}
		w.expectStarted(0)
		for _, record := range w.records() {
			if record.Kind != audit.KindDenial || record.Code != call.CodeDisabled || record.Tool != "other" {
				t.Errorf("recorded %+v, want the refusal of other", record)
			}
		}
		if n := len(w.records()); n != 3 {
			t.Errorf("%d records, want 3", n)
		}
		w.answers(answering(request("git", "echo"), approval.Approve))
		if d := w.caller.Decide(principal.Local, "git", tool.Definition{Name: "other"}); d.Enabled() {
			t.Errorf("Decide(other) = %v, want it disabled", d)
		}
	})
}

// What only the definition decides is decided before the call.
func TestDisabledByClaims(t *testing.T) {
	inWorld(t, approval.ModeAll, func(t *testing.T, w *world) {
		w.rule(`[{annotations: {readOnlyHint: false}, enabled: false}]`)
		w.list(`{"name":"echo","annotations":{"readOnlyHint":true},"inputSchema":{}}`, definition("other", ""))
		w.fails(request("git", "other"), call.CodeDisabled) // it took a start to know
		w.expectStarted(1)
		w.answers(request("git", "echo"))
		w.stop("git")
		w.fails(request("git", "other"), call.CodeDisabled)
		w.fails(request("git", "third"), call.CodeToolNotFound)
		w.expectStarted(1)
		if calls := w.calls(); len(calls) != 1 {
			t.Errorf("the server got %v, want one call", calls)
		}
	})
}

// Rules are those of the moment, and others keep working while one changes.
func TestRulesChange(t *testing.T) {
	inWorld(t, approval.ModeAll, func(t *testing.T, w *world) {
		w.answers(request("git", "echo"))
		w.rule(`[{pattern: [other], enabled: true}]`)
		w.fails(request("git", "echo"), call.CodeDisabled)
		w.fails(request("git", "third"), call.CodeToolNotFound)
		w.rule(`[{pattern: [other], enabled: true}, {default: allow}]`)
		w.answers(request("git", "echo"))
		r := request("git", "echo")
		r.Principal = principal.Principal{}
		w.fails(r, consent.CodeDenied)
	})
}

// A rule that asks has a person confirm each call, or all of the session.
func TestAskRule(t *testing.T) {
	inWorld(t, approval.ModeAsk, func(t *testing.T, w *world) {
		w.rule(`[{pattern: [other], action: ask}]`)
		var asked []approval.Question
		reply := consent.Reply{Answer: approval.Approve, Channel: "elicitation"}
		ask := func(tool string) call.Request {
			r := request("git", tool)
			r.Person.Ask = func(_ context.Context, q approval.Question) (consent.Reply, error) {
				asked = append(asked, q)
				return reply, nil
			}
			return r
		}
		w.answers(ask("echo")) // the server
		w.answers(ask("echo"))
		if len(asked) != 1 {
			t.Errorf("asked %d times, want for the server alone", len(asked))
		}
		for range 2 {
			w.answers(ask("other"))
		}
		if len(asked) != 3 || asked[2].Kind != approval.KindCall || asked[2].Call.Arguments != `{"n":9007199254740993}` {
			t.Errorf("asked %+v, want each call with its arguments", asked)
		}
		reply.Answer = approval.Deny
		w.fails(ask("other"), consent.CodeDenied)
		w.fails(request("git", "other"), consent.CodePending)
		reply = consent.Reply{Answer: approval.Approve, Channel: "elicitation", ForSession: true}
		w.answers(ask("other"))
		n := len(asked)
		w.answers(ask("other"))
		w.answers(request("git", "other"))
		if len(asked) != n {
			t.Error("asked again in a session for which it was approved")
		}
		another := request("git", "other")
		another.Session = "s2"
		w.fails(another, consent.CodePending)
		if calls := w.calls(); len(calls) != 7 {
			t.Errorf("the server got %d calls, want 7", len(calls))
		}
		if history := w.history(); !strings.HasSuffix(history, "call:refused:"+consent.CodePending) || !strings.Contains(history, "denial:refused:"+consent.CodeDenied) {
			t.Errorf("recorded %s, want what was refused", history)
		}
	})
}

// What is confirmed elsewhere passes; what was revoked meanwhile does not.
func TestAskRuleElsewhere(t *testing.T) {
	inWorld(t, approval.ModeAsk, func(t *testing.T, w *world) {
		w.follow()
		w.rule(`[{pattern: ['*'], action: ask}]`)
		ended := w.starts(t.Context(), request("git", "echo"))
		w.decide(approval.Approve) // the server
		pass(time.Second)
		w.decide(approval.Approve) // the call
		if err := <-ended; err != nil {
			t.Errorf("Do() = %v, want the answer", err)
		}
		ended = w.starts(t.Context(), request("git", "echo"))
		other := w.openBook(w.openStore(), approval.ModeAsk)
		_, err := other.Revoke(t.Context(), "git", approval.Decision{Channel: "terminal", By: principal.Local})
		check(t, err)
		if err := <-ended; call.Code(err) != consent.CodeDenied {
			t.Errorf("Do() = %v, want a refusal of what is not approved any more", err)
		}
		if calls := w.calls(); len(calls) != 1 {
			t.Errorf("the server got %d calls, want 1", len(calls))
		}
	})
}
