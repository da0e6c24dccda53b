package main

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// errAlone is a relay that would end what is none of its business.
var errAlone = errors.New("-end is for a container that shares a server's processes")

// endAll ends every process of the container but its init process, which ends
// with the server, and this one.
func endAll() error {
	// Outside of a container made for it, -1 would be all that the user runs.
	if os.Getenv("DOCKGATE_RELAY") == "" || os.Getpid() == 1 {
		return errAlone
	}
	if err := syscall.Kill(-1, syscall.SIGTERM); errors.Is(err, syscall.ESRCH) {
		return nil
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	<-timer.C
	if err := syscall.Kill(-1, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}
