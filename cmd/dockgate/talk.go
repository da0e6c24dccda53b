package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/dockgate/dockgate/internal/docker/reach"
)

// A talk is the log of a command that a person runs: warnings, in the form
// that errors have. Who reads a log wants times and keys; a person wants to
// know what is wrong. Groups are not shown, nor that the engine does not
// answer: a command that needs it ends with that.
type talk struct {
	out   io.Writer
	attrs []slog.Attr
}

// Enabled lets warnings and errors pass.
func (t talk) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

// WithAttrs returns a talk that says attrs with every message.
func (t talk) WithAttrs(attrs []slog.Attr) slog.Handler {
	t.attrs = slices.Concat(t.attrs, attrs)
	return t
}

// WithGroup returns the talk itself.
func (t talk) WithGroup(string) slog.Handler { return t }

// Handle prints a message in one line: what it is about in brackets, and the
// error at the end.
func (t talk) Handle(_ context.Context, r slog.Record) error {
	attrs := slices.Clone(t.attrs)
	r.Attrs(func(a slog.Attr) bool {
		attrs = append(attrs, a)
		return true
	})
	var about []string
	cause := ""
	for _, a := range attrs {
		if a.Key == "err" {
			cause = ": " + a.Value.String()
			failed, _ := a.Value.Any().(error)
			var down *reach.EngineError
			if errors.As(failed, &down) {
				return nil
			}
		} else {
			about = append(about, a.Key+" "+a.Value.String())
		}
	}
	line := r.Message
	if len(about) > 0 {
		line += " (" + strings.Join(about, ", ") + ")"
	}
	_, err := fmt.Fprintf(t.out, "dockgate: warning: %s\n", clean(phrase(line+cause)))
	return err
}
