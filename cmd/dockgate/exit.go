package main

import (
	"errors"

	"github.com/dockgate/dockgate/internal/call"
	"github.com/dockgate/dockgate/internal/catalog"
)

// Some commands have exit codes of their own, in which 2 is what was looked
// for and is not there; using them wrongly is then 1.

const usageExit = "exit code of usage errors"

// ownExits are the annotations of a command that uses 2 for something else.
func ownExits() map[string]string { return map[string]string{usageExit: "1"} }

// An exitError is an error with an exit code.
type exitError struct {
	code int
	err  error
	// shown reports that the command has printed the error already.
	shown bool
}

func (e *exitError) Error() string { return e.err.Error() }

func (e *exitError) Unwrap() error { return e.err }

// notFound gives what is not there the exit code 2; other errors stay.
func notFound(err error) error {
	var server *catalog.UnknownServerError
	var item *call.UnknownItemError
	if errors.As(err, &server) || errors.As(err, &item) {
		return &exitError{code: 2, err: err}
	}
	return err
}
