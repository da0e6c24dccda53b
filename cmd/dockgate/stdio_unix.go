//go:build unix

package main

import (
	"os"
	"syscall"
)

// stdio returns standard input and output for a long conversation. A pipe or
// a socket is switched to non-blocking, so that waiting for it costs no thread
// and closing it ends a read; a terminal is shared with others and stays as it is.
func stdio() (in, out *os.File) { return polled(os.Stdin), polled(os.Stdout) }

func polled(file *os.File) *os.File {
	info, err := file.Stat()
	if err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
		return file
	}
	fd := int(file.Fd())
	if err := syscall.SetNonblock(fd, true); err != nil {
		return file
	}
	return os.NewFile(uintptr(fd), file.Name())
}
