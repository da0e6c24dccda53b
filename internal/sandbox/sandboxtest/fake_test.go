package sandboxtest_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest/probe"
)

// probed is the probe as a fake container.
func probed(ctx context.Context, c sandboxtest.Container) int {
	switch c.Spec.Command[0] {
	case probe.Killed:
		return 137
	case probe.Hungry:
		return sandboxtest.OutOfMemory
	case probe.Stubborn:
		_, _ = io.WriteString(c.Stdout, "ready\n")
		<-c.Killed
		return 0
	}
	return probe.Run(ctx, c.Spec.Command, probe.Stdio{In: c.Stdin, Out: c.Stdout, Err: c.Stderr})
}

func newFake() *sandboxtest.Fake {
	return &sandboxtest.Fake{Servers: map[string]sandboxtest.Server{"probe": probed}}
}

func spec(command ...string) sandbox.Spec {
	return sandbox.Spec{Server: "probe", Image: sandbox.Image{Ref: "probe"}, Command: command}
}

func TestFakeKeepsTheContract(t *testing.T) {
	sandboxtest.Run(t, func(*testing.T) sandboxtest.Subject {
		fake := newFake()
		fake.Before = sandboxtest.Delay(20 * time.Millisecond)
		return sandboxtest.Subject{
			Engine:   fake,
			Spec:     spec(),
			Left:     func(context.Context) ([]string, error) { return fake.Running(), nil },
			Enforces: sandboxtest.Simulated,
		}
	})
}

// The ladder in exact times, which only a fake clock shows.
func TestFakeLadder(t *testing.T) {
	tests := []struct {
		mode string
		stop time.Duration
		took time.Duration
		exit sandbox.Exit
	}{
		{probe.Echo, 0, 0, sandbox.Exit{}},
		{probe.Deaf, 0, 2 * time.Second, sandbox.Exit{Code: 143}},
		{probe.Stubborn, 0, 5 * time.Second, sandbox.Exit{Code: 137}},
		{probe.Deaf, time.Minute, 24 * time.Second, sandbox.Exit{Code: 143}},
		{probe.Stubborn, time.Minute, time.Minute, sandbox.Exit{Code: 137}},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.mode, " ", tt.stop), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				described := spec(tt.mode)
				described.Stop = tt.stop
				p, err := newFake().Start(t.Context(), described)
				if err != nil {
					t.Fatal(err)
				}
				begun := time.Now()
				again := make(chan error, 1)
				go func() { again <- p.Close() }()
				if err := errors.Join(p.Close(), <-again); err != nil {
					t.Errorf("Close() = %v, want nil", err)
				}
				if took := time.Since(begun); took != tt.took {
					t.Errorf("Close() took %v, want %v", took, tt.took)
				}
				if got := p.Exit(); got != tt.exit {
					t.Errorf("Exit() = %+v, want %+v", got, tt.exit)
				}
			})
		})
	}
}

func TestFakeBefore(t *testing.T) {
	full := errors.New("disk full")
	tests := []struct {
		name   string
		before func(context.Context, sandbox.Spec) error
		want   error
	}{
		{"fails", func(context.Context, sandbox.Spec) error { return full }, full},
		{"waits longer than the context", sandboxtest.Delay(time.Hour), context.DeadlineExceeded},
		{"waits", sandboxtest.Delay(time.Second), nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fake := newFake()
				fake.Before = tt.before
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				p, err := fake.Start(ctx, spec(probe.Echo))
				if !errors.Is(err, tt.want) {
					t.Errorf("Start() = %v, want %v", err, tt.want)
				}
				want := 1
				if err != nil {
					want = 0
				} else if err := p.Close(); err != nil {
					t.Error(err)
				}
				if got := fake.Started(); got != want {
					t.Errorf("Started() = %d, want %d", got, want)
				}
			})
		})
	}
}

func TestFakeEndsFromOutside(t *testing.T) {
	tests := []struct {
		name string
		end  func(*sandboxtest.Fake)
		want sandbox.Exit
	}{
		{"kill", func(f *sandboxtest.Fake) { f.Kill("probe") }, sandbox.Exit{Code: 137}},
		{"stop", func(f *sandboxtest.Fake) { f.Stop("probe") }, sandbox.Exit{Code: 143, Stopped: true}},
		{"lose", func(f *sandboxtest.Fake) { f.Lose("") }, sandbox.Exit{Lost: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fake := newFake()
			p, err := fake.Start(t.Context(), spec(probe.Echo))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := fmt.Fprintln(p, "hello"); err != nil {
				t.Fatal(err)
			}
			if got, err := bufio.NewReader(p).ReadString('\n'); got != "hello\n" || err != nil {
				t.Fatalf("Read() = %q, %v", got, err)
			}
			tt.end(fake)
			if got := p.Exit(); got != tt.want {
				t.Errorf("Exit() = %+v, want %+v", got, tt.want)
			}
			if _, err := p.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
				t.Errorf("Read() = %v, want io.EOF", err)
			}
			if _, err := p.Write([]byte("x")); err == nil {
				t.Error("Write() = nil, want an error")
			}
			if diff := cmp.Diff([]string{"probe"}, fake.Running()); diff != "" {
				t.Errorf("before Close (-want +got):\n%s", diff)
			}
			if err := p.Close(); err != nil {
				t.Errorf("Close() = %v", err)
			}
			if diff := cmp.Diff([]string{}, fake.Running()); diff != "" {
				t.Errorf("after Close (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFakeLost(t *testing.T) {
	fake := &sandboxtest.Fake{Servers: map[string]sandboxtest.Server{
		"probe": func(context.Context, sandboxtest.Container) int { return sandboxtest.Lost },
	}}
	p, err := fake.Start(t.Context(), spec())
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	if got, want := p.Exit(), (sandbox.Exit{Lost: true}); got != want {
		t.Errorf("Exit() = %+v, want %+v", got, want)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}
