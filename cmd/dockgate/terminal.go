package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"unicode"

	"golang.org/x/term"
)

// A console is where a person is asked: the controlling terminal, whatever
// standard input and output are.
type console struct {
	in      *bufio.Reader
	out     io.Writer
	paint   paint
	closers []io.Closer
}

// A noTerminalError is a question for a person where there is none.
type noTerminalError struct{ what string }

func (e *noTerminalError) Error() string {
	return e.what + " needs a terminal, because a person has to answer"
}

// Hint says where a person is.
func (e *noTerminalError) Hint() string {
	return "run it in a terminal of your own, or answer in the MCP client, if it shows forms"
}

// openConsole opens the controlling terminal; what is named in the error if
// there is none.
func openConsole(what string) (*console, error) {
	input, output := "/dev/tty", "/dev/tty"
	if runtime.GOOS == "windows" {
		input, output = "CONIN$", "CONOUT$"
	}
	in, err := os.OpenFile(input, os.O_RDWR, 0)
	if err != nil {
		return nil, &noTerminalError{what: what}
	}
	out, err := os.OpenFile(output, os.O_RDWR, 0)
	if err != nil {
		return nil, errors.Join(&noTerminalError{what: what}, in.Close())
	}
	return &console{in: bufio.NewReader(in), out: out, paint: paintFor(out), closers: []io.Closer{in, out}}, nil
}

func (c *console) Close() error {
	var failures []error
	for _, closer := range c.closers {
		failures = append(failures, closer.Close())
	}
	return errors.Join(failures...)
}

// say prints lines for the person.
func (c *console) say(lines ...string) error {
	for _, line := range lines {
		if _, err := fmt.Fprintln(c.out, line); err != nil {
			return err
		}
	}
	return nil
}

// ask prints a prompt and returns the line that is typed, without spaces
// around it. The end of the input is io.EOF; the end of ctx its error.
func (c *console) ask(ctx context.Context, prompt string) (string, error) {
	if _, err := fmt.Fprint(c.out, c.paint.bold(prompt)); err != nil {
		return "", err
	}
	type answer struct {
		text string
		err  error
	}
	typed := make(chan answer, 1)
	// Nothing interrupts the read of a terminal on every system. What ends ctx
	// ends the process soon, so the reader is not waited for then.
	go func() {
		text, err := c.in.ReadString('\n')
		typed <- answer{strings.TrimSpace(text), err}
	}()
	select {
	case a := <-typed:
		if errors.Is(a.err, io.EOF) && a.text != "" {
			a.err = nil
		}
		if a.err != nil {
			a.err = errors.Join(a.err, c.say(""))
		}
		return a.text, a.err
	case <-ctx.Done():
		return "", errors.Join(ctx.Err(), c.say(""))
	}
}

// paint colours text, or leaves it as it is.
type paint struct{ on bool }

// paintFor colours what goes to a terminal, unless the user wants none
// (no-color.org).
func paintFor(w io.Writer) paint {
	return paint{on: isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

func (p paint) in(code, text string) string {
	if !p.on || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (p paint) bold(text string) string   { return p.in("1", text) }
func (p paint) dim(text string) string    { return p.in("2", text) }
func (p paint) red(text string) string    { return p.in("31", text) }
func (p paint) green(text string) string  { return p.in("32", text) }
func (p paint) yellow(text string) string { return p.in("33", text) }

func isTerminal(w any) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd())) //nolint:gosec // a file descriptor is an int
}

// columnsOf returns how wide a terminal is; 0 of anything else.
func columnsOf(w any) int {
	if !isTerminal(w) {
		return 0
	}
	width, _, err := term.GetSize(int(w.(*os.File).Fd())) //nolint:gosec,forcetypeassert // a terminal is a file
	if err != nil {
		return 0
	}
	return width
}

// clean replaces what a terminal would obey or hide: names and logs come from
// servers that nobody trusts.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case r == ' ' || unicode.IsPrint(r):
			return r
		}
		return unicode.ReplacementChar
	}, text)
}

// cleanLines is clean for text of several lines.
func cleanLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = clean(line)
	}
	return strings.Join(lines, "\n")
}
