package endpoint

import (
	"errors"
	"syscall"
)

// wsaConnRefused is WSAECONNREFUSED.
const wsaConnRefused = syscall.Errno(10061)

// refusedByNobody reports whether dialling has failed because nobody listens.
func refusedByNobody(err error) bool { return errors.Is(err, wsaConnRefused) }
