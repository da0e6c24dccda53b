// Command probe is the probe as the program of a container image.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest/probe"
)

func main() {
	mode := ""
	if len(os.Args) > 1 {
		mode = os.Args[1]
	}
	switch mode {
	case probe.Stubborn:
		signal.Ignore(syscall.SIGTERM)
	case probe.Killed:
		if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
			os.Exit(1)
		}
		select {}
	case probe.Hungry:
		eat()
	case probe.Look, probe.Against:
		report := probe.Inspect
		if mode == probe.Against {
			report = probe.Push
		}
		if err := report(os.Args[1:], os.Environ(), os.Stdout); err != nil {
			_, _ = os.Stderr.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
		return
	}
	// The timer keeps the runtime from ending a program that only waits.
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	code := probe.Run(ctx, os.Args[1:], probe.Stdio{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
	cancel()
	os.Exit(code)
}

// eat touches memory until there is none.
func eat() {
	var eaten [][]byte
	for {
		block := make([]byte, 8<<20)
		for i := 0; i < len(block); i += 4096 {
			block[i] = 1
		}
		eaten = append(eaten, block)
		if len(eaten) > 1<<20 {
			return
		}
	}
}
