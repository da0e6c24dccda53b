package main

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/dockgate/dockgate/internal/docker/reach"
)

func TestTalk(t *testing.T) {
	var b strings.Builder
	log := slog.New(talk{out: &b})
	tests := []struct {
		say  func()
		want string
	}{
		{func() { log.Info("state") }, ""},
		{func() { log.Warn("plain") }, "dockgate: warning: plain\n"},
		{func() { log.Warn("sweep failed", "err", errors.New("no engine\nhere")) }, "dockgate: warning: sweep failed: no engine\uFFFDhere\n"},
		{func() {
			log.Warn("sweep failed", "err", fmt.Errorf("sweep: %w", &reach.EngineError{Host: "unix:///x", Err: errors.New("gone")}))
		}, ""},
		{
			func() { log.With("server", "git").Error("left behind", "err", errors.New("busy"), "container", "1a") },
			"dockgate: warning: left behind (server git, container 1a): busy\n",
		},
	}
	for n, tt := range tests {
		b.Reset()
		tt.say()
		if got := b.String(); got != tt.want {
			t.Errorf("message %d = %q, want %q", n, got, tt.want)
		}
	}
}
