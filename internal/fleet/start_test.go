package fleet_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/fleet"
	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest"
	"github.com/dockgate/dockgate/internal/secret"
	"github.com/dockgate/dockgate/internal/upstream"
)

func TestFailedStart(t *testing.T) {
	tests := []struct {
		name  string
		image string
		set   func(*world)
		want  string
		hint  string
	}{
		{
			"the server exits", "mcp", func(w *world) { w.broken.Store(true) },
			`start server "git": it exited with code 1 before it answered: cannot open [31mthe door`,
			"see what it wrote: dockgate logs git",
		},
		{
			"the server does not answer", "mute", func(*world) {},
			`server "git" did not answer the start within 30s: thinking`,
			"raise timeouts.start of git, if it needs longer",
		},
		{
			"the engine does not answer", "mcp", func(w *world) { w.fake.Before = sandboxtest.Delay(time.Hour) },
			`server "git" did not answer the start within 30s`,
			"raise timeouts.start of git, if it needs longer",
		},
		{
			"no image", "none", func(*world) {},
			`start server "git": start container of "git": image none: no such image`,
			"see what it wrote: dockgate logs git",
		},
		{
			"a secret is missing", "mcp", func(w *world) { w.unlock = func() error { return missing() } },
			`start server "git": secret "git.token" is not set`,
			"set GIT_TOKEN in the environment: ask your mother",
		},
		{
			"the era is not known", "mcp", func(w *world) { w.eraFails = errTest },
			`start server "git": told to fail`, "see what it wrote: dockgate logs git",
		},
		{
			"the listing is refused", "mcp", func(w *world) { w.listed = func(upstream.Offer) error { return errTest } },
			`start server "git": told to fail`, "see what it wrote: dockgate logs git",
		},
		{
			"the start is not recorded", "mcp", func(w *world) {
				w.recorded = func(e fleet.Event) error {
					if e.Kind == "start" {
						return errTest
					}
					return nil
				}
			},
			`start server "git": told to fail`, "see what it wrote: dockgate logs git",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				tt.set(w)
				_, err := w.call(t.Context(), w.order("git", tt.image), "echo")
				var failed *fleet.StartError
				if !errors.As(err, &failed) || err.Error() != tt.want {
					t.Fatalf("Call = %v, want %s", err, tt.want)
				}
				if failed.Hint() != tt.hint {
					t.Errorf("Hint() = %s, want %s", failed.Hint(), tt.hint)
				}
				w.expectRunning()
				w.expectEvents("start-failed git")
				if got := w.fleet.Running(); len(got) > 0 {
					t.Errorf("Running() = %v, want none", got)
				}
			})
		})
	}
}

func missing() error {
	return &secret.MissingError{Secrets: []secret.Need{{
		Ref: secret.Ref{Name: "git.token", Env: "GIT_TOKEN"}, Required: true, Instructions: "ask your mother",
	}}}
}

func TestHintOfRights(t *testing.T) {
	err := &fleet.StartError{Server: "git", Err: errTest, Stderr: "EACCES: permission denied, mkdir '/app/x'"}
	if got := err.Hint(); !strings.Contains(got, "dockgate plan git") {
		t.Errorf("Hint() = %s, want one about mounts", got)
	}
}

func TestBackoff(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		o := w.order("git", "mcp")
		fails := func() {
			t.Helper()
			var failed *fleet.StartError
			var resting *fleet.BackoffError
			if _, err := w.call(t.Context(), o, "echo"); !errors.As(err, &failed) || errors.As(err, &resting) {
				t.Fatalf("Call = %v, want a StartError", err)
			}
		}
		rests := func(wait time.Duration) {
			t.Helper()
			var resting *fleet.BackoffError
			if _, err := w.call(t.Context(), o, "echo"); !errors.As(err, &resting) || resting.Wait != wait {
				t.Fatalf("Call = %v, want a BackoffError of %v", err, wait)
			}
			if err := w.fleet.Rested(o); !errors.As(err, &resting) || !w.fleet.Failed("git") || w.fleet.Failed("other") {
				t.Fatalf("Rested = %v, Failed(git), Failed(other) = %v, %v, want a BackoffError, true, false", err, w.fleet.Failed("git"), w.fleet.Failed("other"))
			}
		}
		w.broken.Store(true)
		fails()
		for _, wait := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
			fails() // the first failure cost nothing; then its wait is over
			rests(wait * time.Second)
			pass(wait*time.Second - time.Millisecond)
			rests(time.Millisecond)
			pass(time.Millisecond)
		}
		started := w.fake.Started()

		// Other settings are another chance.
		w.broken.Store(false)
		fails2 := changed(o)
		w.answers(fails2, "echo", answerOf(1))
		w.expectStarted(started + 1)

		// An answer makes up for everything, an error too.
		w.answers(o, "echo", answerOf(2))
		if err := w.fleet.Rested(o); err != nil || w.fleet.Failed("git") {
			t.Errorf("Rested, Failed(git) after an answer = %v, %v, want nil, false", err, w.fleet.Failed("git"))
		}
		for range 5 {
			if _, err := w.call(t.Context(), o, "fail"); err == nil {
				t.Error("Call(fail) = nil, want an error")
			}
			if _, err := w.call(t.Context(), o, "crash"); err == nil {
				t.Error("Call(crash) = nil, want an error")
			}
		}
		w.broken.Store(true)
		fails()
		rests(time.Second)
		if _, err := w.fleet.Stop(t.Context(), "git"); err != nil {
			t.Fatal(err)
		}
		fails() // a stop forgets
	})
}

// What a crash costs is known before the call that it ended returns.
func TestBackoffAfterCrashes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		o := w.order("git", "mcp")
		for range 2 {
			var lost *fleet.LostError
			if _, err := w.call(t.Context(), o, "crash"); !errors.As(err, &lost) {
				t.Errorf("Call(crash) = %v, want a LostError", err)
			}
		}
		var resting *fleet.BackoffError
		_, err := w.call(t.Context(), o, "echo")
		if !errors.As(err, &resting) {
			t.Errorf("Call = %v, want a BackoffError", err)
		}
		want := `server "git" failed and is not started again for 1s: server "git" exited with code 3: boom`
		if err != nil && err.Error() != want {
			t.Errorf("Call = %v, want %s", err, want)
		}
		w.expectEvents("start git", "crash git", "start git", "crash git")
	})
}

// Who waits for the end of the old container finds out what that cost.
func TestBackoffOfWhoWaited(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		o := w.order("git", "mcp")
		if _, err := w.call(t.Context(), o, "crash"); err == nil {
			t.Error("Call(crash) = nil, want an error")
		}
		leaving := w.starts(o, "leave") // the second failure, in 2 s
		var resting *fleet.BackoffError
		if d := took(func() {
			if _, err := w.call(t.Context(), o, "echo"); !errors.As(err, &resting) {
				t.Errorf("Call = %v, want a BackoffError", err)
			}
		}); d != 2*time.Second {
			t.Errorf("Call took %v, want the 2s of the old one's end", d)
		}
		if err := <-leaving; err == nil {
			t.Error("Call(leave) = nil, want an error")
		}
		w.expectStarted(2)
		w.expectEvents("start git", "crash git", "start git", "crash git")
		pass(time.Second)
		w.answers(o, "echo", answerOf(3))
	})
}

func TestConfigurationCostsNoBackoff(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		o := w.order("git", "mcp")
		for range 5 {
			w.unlock = missing
			var unset *secret.MissingError
			if _, err := w.call(t.Context(), o, "echo"); !errors.As(err, &unset) {
				t.Errorf("Call = %v, want a MissingError", err)
			}
		}
		w.expectStarted(0)
		w.unlock = nil
		w.answers(o, "echo", answerOf(1))
	})
}

func TestEras(t *testing.T) {
	tests := []struct {
		image string
		era   string
		// first and second are what the server gets at its starts.
		first, second string
		started       int
	}{
		{"mcp", "legacy", "server/discover initialize notifications/initialized tools/list", "initialize notifications/initialized tools/list", 2},
		{"modern", "modern", "server/discover tools/list", "server/discover tools/list", 2},
		{"touchy", "legacy", "server/discover initialize notifications/initialized tools/list", "initialize notifications/initialized tools/list", 3},
	}
	for _, tt := range tests {
		t.Run(tt.image, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				o := w.order("git", tt.image)
				for _, want := range []string{tt.first, tt.second} {
					w.received = nil
					if err := w.ready(o); err != nil {
						t.Fatalf("Ready() = %v, want nil", err)
					}
					if diff := cmp.Diff(want, strings.Join(w.received, " ")); diff != "" {
						t.Errorf("received (-want +got):\n%s", diff)
					}
					if _, err := w.fleet.Stop(t.Context(), "git"); err != nil {
						t.Fatal(err)
					}
				}
				w.expectStarted(tt.started)
				if got := w.eras["sha256:"+tt.image]; got != tt.era {
					t.Errorf("era = %q, want %q", got, tt.era)
				}
			})
		})
	}
}

// A server that cannot stand the probe and then cannot be started again.
func TestNoSecondProcess(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.fake.Before = func(_ context.Context, _ sandbox.Spec) error {
			if w.fake.Started() > 0 {
				return errTest
			}
			return nil
		}
		if err := w.ready(w.order("git", "touchy")); !errors.Is(err, errTest) {
			t.Errorf("Ready() = %v, want the engine's error", err)
		}
		w.expectRunning()
	})
}
