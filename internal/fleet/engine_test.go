package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/dockgate/dockgate/internal/fleet"
	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest"
)

// However often an engine goes, no server has to rest for it.
func TestEngineCostsNoBackoff(t *testing.T) {
	const often = 4
	tests := []struct {
		name string
		// set makes the engine go as often as it is asked, then stay.
		set  func(w *world, goes func() bool)
		tool string
	}{
		{"down at the start", func(w *world, goes func() bool) {
			w.fake.Before = func(context.Context, sandbox.Spec) error {
				if goes() {
					return fmt.Errorf("dial: %w", sandbox.ErrEngineFailed)
				}
				return nil
			}
		}, "echo"},
		{"lost during the start", func(w *world, goes func() bool) {
			serve := w.server(legacy)
			w.fake.Servers["mcp"] = func(ctx context.Context, c sandboxtest.Container) int {
				if goes() {
					return sandboxtest.Lost
				}
				return serve(ctx, c)
			}
		}, "echo"},
		{"lost during a call", func(w *world, goes func() bool) {
			serve := w.server(legacy)
			w.fake.Servers["mcp"] = func(ctx context.Context, c sandboxtest.Container) int {
				code := serve(ctx, c)
				if code == 3 && goes() {
					return sandboxtest.Lost
				}
				return code
			}
		}, "crash"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				var went int
				tt.set(w, func() bool { went++; return went <= often })
				o := w.order("git", "mcp")
				for went < often {
					var resting *fleet.BackoffError
					if _, err := w.call(t.Context(), o, tt.tool); err == nil || errors.As(err, &resting) {
						t.Fatalf("Call(%s) = %v, want the engine's end", tt.tool, err)
					}
				}
				if _, err := w.call(t.Context(), o, "echo"); err != nil {
					t.Errorf("Call(echo) = %v once the engine stays, want a result", err)
				}
			})
		})
	}
}
