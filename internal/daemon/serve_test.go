package daemon_test

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/dockgate/dockgate/internal/daemon"
	"github.com/dockgate/dockgate/internal/docker/reach"
	"github.com/dockgate/dockgate/internal/setup"
)

// A client that leaves at once, or an end that comes before anything, is no
// error of the gateway.
func TestServeNobody(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for name, ctx := range map[string]context.Context{"client gone": t.Context(), "stopped": over} {
		t.Run(name, func(t *testing.T) {
			d, err := daemon.Open(t.Context(), daemon.Options{
				Inputs: setup.Inputs{Env: func(string) (string, bool) { return "", false }},
				State:  t.TempDir(),
				Engine: reach.Options{Host: "unix:///dockgate-test/none.sock"},
				Logger: slog.New(slog.DiscardHandler),
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := d.Close(); err != nil {
					t.Error(err)
				}
			})
			if err := d.Serve(ctx, io.NopCloser(strings.NewReader("")), nowhere{}); err != nil {
				t.Errorf("Serve() = %v, want nil", err)
			}
		})
	}
}

type nowhere struct{}

func (nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (nowhere) Close() error                { return nil }
