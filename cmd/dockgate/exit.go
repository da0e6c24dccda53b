package main

import (
	"errors"
	"io/fs"

	"github.com/dockgate/dockgate/internal/access"
	"github.com/dockgate/dockgate/internal/approval/consent"
	"github.com/dockgate/dockgate/internal/call"
	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/catalog/official"
	"github.com/dockgate/dockgate/internal/client"
	"github.com/dockgate/dockgate/internal/daemon"
	"github.com/dockgate/dockgate/internal/docker/reach"
	"github.com/dockgate/dockgate/internal/policy"
	"github.com/dockgate/dockgate/internal/rules"
)

// The last lines of the long help of commands. One rule holds for all of them;
// [executionError] has those of failed calls beside it.
const (
	exits = `

Exit codes: 0 done, 1 failed or used wrongly, 2 a configuration has mistakes or
what is named is not there.`
	exitsApproval = `

Exit codes: 0 done, 1 failed or used wrongly, 2 a configuration has mistakes or
what is named is not there, 5 something is not approved or was denied.`
	exitsSearch = `

Exit codes: 0 found, 1 failed or used wrongly, 2 nothing was found, or a
configuration has mistakes.`
)

// An exitError is an error with an exit code.
type exitError struct {
	code int
	err  error
	// shown reports that the command has printed the error already.
	shown bool
}

func (e *exitError) Error() string { return e.err.Error() }

func (e *exitError) Unwrap() error { return e.err }

// exitCode maps an error to the exit code of the process.
func exitCode(err error) int {
	var (
		own   *exitError
		usage *usageError
		other *otherGatewayError
	)
	switch {
	case errors.As(err, &own):
		return own.code
	case errors.As(err, &usage):
		return 1
	case errors.As(err, &other):
		return exitOther
	}
	switch call.Code(err) {
	case consent.CodePending, consent.CodeDenied:
		return 5
	}
	if isConfiguration(err) || isAbsent(err) {
		return 2
	}
	return 1
}

// isConfiguration reports that an error is a mistake in a configuration, a
// client's too, or in a catalog.
func isConfiguration(err error) bool {
	var (
		config *policy.ConfigError
		rule   rules.Problems
		entry  catalog.Problems
		file   *client.FileError
	)
	return errors.As(err, &config) || errors.As(err, &rule) || errors.As(err, &entry) || errors.As(err, &file)
}

// isAbsent reports that an error is that something was named which is not
// there: a server, a tool, a client, a file and the like.
func isAbsent(err error) bool {
	var (
		server    *catalog.UnknownServerError
		item      *call.UnknownItemError
		program   *client.UnknownError
		token     *access.UnknownTokenError
		inactive  *daemon.InactiveError
		approved  *notApprovedError
		asked     *nothingAskedError
		installed *notInstalledError
		sources   *noSourceError
		engine    *reach.EngineError
	)
	return errors.As(err, &server) || errors.As(err, &item) || errors.As(err, &program) || errors.As(err, &token) ||
		errors.As(err, &inactive) || errors.As(err, &approved) || errors.As(err, &asked) || errors.As(err, &installed) ||
		errors.As(err, &sources) || errors.Is(err, official.ErrUnknown) ||
		// The socket of an engine that is not running was not named as a file.
		errors.Is(err, fs.ErrNotExist) && !errors.As(err, &engine)
}
