package probe

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Pushed is what a container lets happen: not what its limits are, but where
// they stop a program that runs into them.
type Pushed struct {
	// Filled is how many bytes a file in each of the places could have, and
	// what stopped it.
	Filled map[string]Stop `json:"filled"`
	// Files is how many files could be open at once.
	Files Stop `json:"files"`
	// Processes is how many processes could be started.
	Processes Stop `json:"processes"`
	// CPUs is how much processor time a second of work on all processors got,
	// in seconds.
	CPUs float64 `json:"cpus"`
	// Refused is what the kernel said to things that nobody may do in a
	// sandbox; empty is that it did them.
	Refused map[string]string `json:"refused"`
}

// A Stop is how far something went.
type Stop struct {
	Count  int64  `json:"count"`
	Reason string `json:"reason"`
}

// mostFilled, mostOpened and mostStarted end what nothing else ends.
const (
	mostFilled  = 1 << 30
	mostOpened  = 100_000
	mostStarted = 5_000
)

// Push runs into every limit that a program can survive and writes what
// happened, a [Pushed], as JSON. It fills /tmp, /dev/shm and the folders that
// the arguments name.
func Push(args, _ []string, out io.Writer) error {
	pushed := Pushed{Filled: make(map[string]Stop), Refused: make(map[string]string)}
	for _, dir := range append([]string{"/tmp", "/dev/shm"}, args...) {
		if filepath.IsAbs(dir) {
			pushed.Filled[dir] = fill(filepath.Join(dir, "filled"))
		}
	}
	pushed.Files = open()
	pushed.Refused["write to /"] = reason(os.WriteFile("/written", nil, 0o600))
	pushed.Refused["write to /etc"] = reason(os.WriteFile("/etc/written", nil, 0o600))
	pushed.Refused["reach the network"] = reason(dial())
	trespass(pushed.Refused)
	pushed.CPUs = work(time.Second)
	pushed.Processes = start() // last: nothing may need a thread after it
	return json.NewEncoder(out).Encode(pushed)
}

func fill(name string) Stop {
	file, err := os.Create(name)
	if err != nil {
		return Stop{Reason: reason(err)}
	}
	defer func() {
		_ = file.Close()
		_ = os.Remove(name)
	}()
	block := make([]byte, 64<<10)
	var written int64
	for err == nil && written < mostFilled {
		var n int
		n, err = file.Write(block)
		written += int64(n)
	}
	return Stop{Count: written, Reason: reason(err)}
}

func open() Stop {
	var opened []*os.File
	defer func() {
		for _, file := range opened {
			_ = file.Close()
		}
	}()
	for len(opened) < mostOpened {
		file, err := os.Open(os.DevNull)
		if err != nil {
			return Stop{Count: int64(len(opened)), Reason: reason(err)}
		}
		opened = append(opened, file)
	}
	return Stop{Count: mostOpened}
}

// dial tries an address that no packet reaches, because none leaves.
func dial() error {
	conn, err := net.DialTimeout("tcp", "192.0.2.1:80", time.Second)
	if err == nil {
		_ = conn.Close()
	}
	return err
}

// reason is the kernel's own word for an error.
func reason(err error) string {
	if err == nil {
		return ""
	}
	var number syscall.Errno
	if errors.As(err, &number) {
		return number.Error()
	}
	return err.Error()
}
