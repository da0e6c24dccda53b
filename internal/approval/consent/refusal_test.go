package consent_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/approval/consent"
)

func TestRefusalTexts(t *testing.T) {
	tests := []struct {
		err  error
		want string
		hint string
	}{
		{
			&consent.PendingError{ID: "1a2b3c4d", Server: "github"},
			`APPROVAL_PENDING: "github" waits for approval; ask the user to run dockgate approve (question 1a2b3c4d)`,
			"run dockgate approve github",
		},
		{
			&consent.PendingError{ID: "1a2b3c4d", Server: "github", State: approval.Expired},
			`APPROVAL_PENDING: "github" waits for approval because its approval expired; ask the user to run dockgate approve (question 1a2b3c4d)`,
			"run dockgate approve github",
		},
		{
			&consent.DeniedError{ID: "1a2b3c4d", Server: "github", Tool: "push", Reason: "the user denied it"},
			`APPROVAL_DENIED: tool "push" of "github" may not be used: the user denied it (question 1a2b3c4d)`,
			"to allow it, run dockgate approve github",
		},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, tt.err.Error()); diff != "" {
			t.Errorf("%T (-want +got):\n%s", tt.err, diff)
		}
		hinted, ok := tt.err.(interface{ Hint() string })
		if !ok || hinted.Hint() != tt.hint {
			t.Errorf("%T has no hint %q", tt.err, tt.hint)
		}
		if strings.Contains(tt.err.Error(), "--yes") {
			t.Errorf("%T offers a way around the person: %s", tt.err, tt.err)
		}
	}
}
