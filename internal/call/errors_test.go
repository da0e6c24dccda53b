package call_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/approval/consent"
	"github.com/dockgate/dockgate/internal/call"
	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/fleet"
	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/meta"
	"github.com/dockgate/dockgate/internal/plan"
	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/secret"
	"github.com/dockgate/dockgate/internal/tool"
	"github.com/dockgate/dockgate/internal/upstream"
)

func TestCode(t *testing.T) {
	answer := &jsonrpc.Error{Code: -32602, Message: "bad"}
	late := &fleet.TimeoutError{Server: "git", Doing: "call", Setting: "call", Limit: time.Second}
	full := &fleet.MemoryError{Server: "git", Limit: 2 << 30}
	tests := []struct {
		err  error
		want string
	}{
		{nil, ""},
		{answer, ""},
		{fmt.Errorf("call: %w", answer), ""},
		{&fleet.StartError{Server: "git", Err: answer}, call.CodeConnection},
		{&fleet.BackoffError{Server: "git", Err: &fleet.StartError{Server: "git", Err: answer}}, call.CodeConnection},
		{&consent.PendingError{Server: "git"}, consent.CodePending},
		{&consent.DeniedError{Server: "git"}, consent.CodeDenied},
		{fmt.Errorf("tool: %w", approval.ErrNotApproved), consent.CodeDenied},
		{call.ErrNobody, consent.CodeDenied},
		{&call.WaitingError{Server: "git", Doing: "pulling"}, call.CodeStarting},
		{&call.UnknownItemError{Server: "git"}, call.CodeToolNotFound},
		{&call.RecordError{Err: errDisk}, call.CodeAudit},
		{&call.DisabledError{Server: "git", Tool: "push"}, call.CodeDisabled},
		{&catalog.UnknownServerError{Name: "git"}, call.CodeToolNotFound},
		{&catalog.SettingsError{Server: "git"}, call.CodeConfiguration},
		{&sandbox.CompileError{Server: "git"}, call.CodeConfiguration},
		{&plan.UnsupportedError{Server: "git"}, call.CodeConfiguration},
		{&fleet.StartError{Server: "git", Err: &secret.MissingError{}}, call.CodeConfiguration},
		{&fleet.StartError{Server: "git", Err: &secret.FileError{Path: ".env"}}, call.CodeConfiguration},
		{&meta.ArgumentError{Tool: "mcp_add", Problem: "no name"}, call.CodeValidation},
		{fmt.Errorf("server: %w", &jsonrpc.MessageError{Err: errDisk}), call.CodeValidation},
		{late, call.CodeTimeout},
		{&fleet.StartError{Server: "git", Err: &fleet.TimeoutError{Server: "git", Doing: "start"}}, call.CodeConnection},
		{&fleet.LostError{Server: "git"}, call.CodeConnection},
		{&fleet.LostError{Server: "git", Why: fleet.ErrSilent}, call.CodeConnection},
		{fmt.Errorf("server: %w", &jsonrpc.LineError{Limit: 1}), call.CodeExecution},
		{fmt.Errorf("server: %w", &upstream.AnswerError{Problem: "x"}), call.CodeExecution},
		{&fleet.LostError{Server: "git", Why: full}, call.CodeMemory},
		{&fleet.StartError{Server: "git", Err: full}, call.CodeMemory},
		{&fleet.BackoffError{Server: "git", Err: &fleet.LostError{Server: "git", Why: full}}, call.CodeMemory},
		{fleet.ErrClosed, call.CodeConnection},
		{context.Canceled, call.CodeCancelled},
		{context.DeadlineExceeded, call.CodeConnection},
		{errors.Join(errDisk, &consent.PendingError{}), consent.CodePending},
		{errDisk, call.CodeConnection},
	}
	for _, tt := range tests {
		if got := call.Code(tt.err); got != tt.want {
			t.Errorf("Code(%T: %v) = %q, want %q", tt.err, tt.err, got, tt.want)
		}
	}
}

func TestFailure(t *testing.T) {
	ref := tool.Ref{Server: "git", Name: "log"}
	type failed struct {
		text, code, message, hint, server string
	}
	tests := []struct {
		err  error
		ref  tool.Ref
		want failed
	}{
		{
			&secret.MissingError{Secrets: []secret.Need{{Ref: secret.Ref{Name: "git.token", Env: "GIT_TOKEN"}, Instructions: "ask your mother"}}}, ref,
			failed{
				"CONFIGURATION_ERROR: secret \"git.token\" is not set\nset GIT_TOKEN in the environment: ask your mother",
				"CONFIGURATION_ERROR", `secret "git.token" is not set`, "set GIT_TOKEN in the environment: ask your mother", "git",
			},
		},
		{ // the code stands there once, and nothing to paste
			&consent.PendingError{ID: "1a2b3c4d", Server: "git"}, ref,
			failed{
				`APPROVAL_PENDING: "git" waits for approval; ask the user to run dockgate approve (question 1a2b3c4d)`, "APPROVAL_PENDING",
				`APPROVAL_PENDING: "git" waits for approval; ask the user to run dockgate approve (question 1a2b3c4d)`, "", "git",
			},
		},
		{
			&consent.DeniedError{Server: "git", Reason: "the user denied it"}, ref,
			failed{`APPROVAL_DENIED: "git" may not be used: the user denied it`, "APPROVAL_DENIED", `APPROVAL_DENIED: "git" may not be used: the user denied it`, "", "git"},
		},
		{
			&fleet.LostError{Server: "postgres", Why: &fleet.MemoryError{Server: "postgres", Limit: 500 << 20}}, ref,
			failed{
				`OUT_OF_MEMORY: "postgres" passed its 500 MB limit; raise limits.memory`, "OUT_OF_MEMORY",
				`"postgres" passed its 500 MB limit; raise limits.memory`, "", "git",
			},
		},
		{
			&meta.ArgumentError{Tool: "mcp_add", Problem: "no name"},
			tool.Ref{Name: "mcp_add"},
			failed{"VALIDATION_ERROR: mcp_add: no name", "VALIDATION_ERROR", "mcp_add: no name", "", ""},
		},
	}
	for _, tt := range tests {
		raw, err := call.Failure(tt.err, tt.ref)
		if err != nil {
			t.Errorf("Failure(%v) = %v, want a result", tt.err, err)
			continue
		}
		var result struct {
			Content    []struct{ Type, Text string }
			IsError    bool
			Structured struct {
				Success bool
				Error   struct{ Code, Message, Hint, Tool, Server string }
			} `json:"structuredContent"`
		}
		if err := json.Unmarshal(raw, &result); err != nil {
			t.Fatal(err)
		}
		if !result.IsError || result.Structured.Success || len(result.Content) != 1 || result.Content[0].Type != "text" || result.Structured.Error.Tool != tt.ref.Name {
			t.Errorf("Failure(%v) = %s, want a failed result of %s", tt.err, raw, tt.ref.Name)
			continue
		}
		e := result.Structured.Error
		got := failed{result.Content[0].Text, e.Code, e.Message, e.Hint, e.Server}
		if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(failed{})); diff != "" {
			t.Errorf("Failure(%v) (-want +got):\n%s", tt.err, diff)
		}
	}
	for _, err := range []error{&jsonrpc.Error{Code: 1, Message: "m"}, context.Canceled} {
		if raw, got := call.Failure(err, ref); raw != nil || !errors.Is(got, err) {
			t.Errorf("Failure(%v) = %s, %v, want it back", err, raw, got)
		}
	}
}
