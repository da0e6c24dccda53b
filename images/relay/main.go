// Command relay carries connections from its stdin and stdout to a port of the
// network that it is in.
//
//	relay [-end] PORT
//
// With -end, the end of its input is the end of every process that it can see:
// it runs beside a server which does not look at its own input, and shares its
// processes, so that a gateway that was killed leaves neither behind.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/dockgate/dockgate/internal/relay"
)

// patience is how long the server may take to end after SIGTERM.
const patience = 2 * time.Second

func main() {
	if err := run(os.Args[1:]); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "relay:", err)
		os.Exit(1)
	}
}

// A stdio is what the gateway is joined to.
type stdio struct {
	io.Reader
	io.Writer
}

// Close ends the output; the input is at its end, or ends with the program.
func (stdio) Close() error { return os.Stdout.Close() }

func run(args []string) error {
	flags := flag.NewFlagSet("relay", flag.ContinueOnError)
	end := flags.Bool("end", false, "at the end of the input, end every process that can be seen")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return errors.New("want one port")
	}
	port, err := strconv.ParseUint(flags.Arg(0), 10, 16)
	if err != nil || port == 0 {
		return fmt.Errorf("%q is not a port", flags.Arg(0))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err = relay.Serve(ctx, stdio{os.Stdin, os.Stdout}, int(port))
	if *end {
		err = errors.Join(err, endAll())
	}
	return err
}
