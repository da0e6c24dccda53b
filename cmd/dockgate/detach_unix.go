//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// detach makes a command outlive this process and its terminal.
func detach(command *exec.Cmd) { command.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
