//go:build unix

package endpoint

import (
	"errors"
	"syscall"
)

// refusedByNobody reports whether dialling has failed because nobody listens.
func refusedByNobody(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }
