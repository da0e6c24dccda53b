package main

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/windows"
)

// detach makes a command outlive this process and its console.
func detach(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.DETACHED_PROCESS | windows.CREATE_NEW_PROCESS_GROUP}
}
