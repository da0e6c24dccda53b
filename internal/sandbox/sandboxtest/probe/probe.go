// Package probe is the program that the contract suite runs in containers. It
// does what a server should not do, on demand, and reports what it can see
// from inside.
package probe

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// The modes, given as the first word of the command.
const (
	// Echo copies stdin to stdout until it ends, then exits with 0.
	Echo = "echo"
	// Exit says "leaving" on stderr and exits with the code of the second word.
	Exit = "exit"
	// Chatter writes the second word's number of numbered lines to stderr, "done"
	// to stdout, and exits with 0.
	Chatter = "chatter"
	// Deaf says "ready" on stdout and does not notice the end of its input.
	Deaf = "deaf"
	// Stubborn is Deaf and ignores SIGTERM too.
	Stubborn = "stubborn"
	// Killed sends itself SIGKILL.
	Killed = "killed"
	// Hungry uses memory until it is killed.
	Hungry = "hungry"
	// Flood writes to stdout without end and reads nothing.
	Flood = "flood"
	// Look writes a [Report] to stdout and exits with 0.
	Look = "look"
	// Against runs into every limit, see [Push], and exits with 0.
	Against = "against"
)

// A Stdio is what the probe talks over.
type Stdio struct {
	In       io.Reader
	Out, Err io.Writer
}

// A Report is what a container looks like from inside.
type Report struct {
	Args []string          `json:"args"`
	Env  map[string]string `json:"env"`
	UID  int               `json:"uid"`
	GID  int               `json:"gid"`
	Dir  string            `json:"dir"`
	// Capabilities, NoNewPrivileges and Seccomp are lines of
	// /proc/self/status.
	Capabilities    string `json:"capabilities"`
	NoNewPrivileges string `json:"no_new_privileges"`
	Seccomp         string `json:"seccomp"`
	// Memory, MemorySwap, CPUs and PIDs are the limits of the control group; 0
	// is none. MemorySwap is of memory and swap together.
	Memory     int64   `json:"memory"`
	MemorySwap int64   `json:"memory_swap"`
	CPUs       float64 `json:"cpus"`
	PIDs       int64   `json:"pids"`
	// CPUShares is the weight of cgroup v1; 0 on v2, which counts otherwise.
	CPUShares int64 `json:"cpu_shares"`
	Files     int64 `json:"files"`
	// Mounts has the options of every mount point.
	Mounts map[string]string `json:"mounts"`
	// Interfaces are the network interfaces.
	Interfaces []string `json:"interfaces"`
	// PID1 is the name of the first process.
	PID1 string `json:"pid1"`
	// WritableRoot reports that a file could be made in "/".
	WritableRoot bool `json:"writable_root"`
}

// Run runs those modes that need no kernel, and returns the exit code. It
// returns early when the context ends, except in the modes that would not.
func Run(ctx context.Context, args []string, stdio Stdio) int {
	mode, arg := "", ""
	if len(args) > 0 {
		mode = args[0]
	}
	if len(args) > 1 {
		arg = args[1]
	}
	switch mode {
	case Echo:
		return echo(stdio)
	case Exit:
		code, err := strconv.Atoi(arg)
		if err != nil {
			return 64
		}
		_, _ = fmt.Fprintln(stdio.Err, "leaving")
		return code
	case Chatter:
		return chatter(stdio, arg)
	case Deaf, Stubborn:
		_, _ = fmt.Fprintln(stdio.Out, "ready")
		<-ctx.Done()
		return 128 + 15
	case Flood:
		line := []byte(strings.Repeat("flood ", 1000) + "\n")
		for ctx.Err() == nil {
			if _, err := stdio.Out.Write(line); err != nil {
				return 1
			}
		}
		return 128 + 15
	default:
		_, _ = fmt.Fprintf(stdio.Err, "probe: unknown mode %q\n", mode)
		return 64
	}
}

func echo(stdio Stdio) int {
	if _, err := io.Copy(stdio.Out, stdio.In); err != nil {
		return 1
	}
	return 0
}

func chatter(stdio Stdio, lines string) int {
	n, err := strconv.Atoi(lines)
	if err != nil {
		return 64
	}
	buffered := bufio.NewWriter(stdio.Err)
	for i := range n {
		_, _ = fmt.Fprintf(buffered, "line %d\n", i+1)
	}
	if buffered.Flush() != nil {
		return 1
	}
	_, _ = fmt.Fprintln(stdio.Out, "done")
	return 0
}

// Inspect writes a [Report] of this process as JSON. Its arguments and its
// environment are given.
func Inspect(args, environment []string, out io.Writer) error {
	report := Report{
		Args:   args,
		Env:    make(map[string]string),
		UID:    os.Getuid(),
		GID:    os.Getgid(),
		Mounts: make(map[string]string),
	}
	for _, variable := range environment {
		name, value, _ := strings.Cut(variable, "=")
		report.Env[name] = value
	}
	var err error
	if report.Dir, err = os.Getwd(); err != nil {
		return err
	}
	if err := report.readProc(); err != nil {
		return err
	}
	report.readLimits()
	if file, err := os.Create("/probe-was-here"); err == nil {
		report.WritableRoot = true
		if err := file.Close(); err != nil {
			return err
		}
	}
	return json.NewEncoder(out).Encode(report)
}

func (r *Report) readProc() error {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch name {
		case "CapEff":
			r.Capabilities = value
		case "NoNewPrivs":
			r.NoNewPrivileges = value
		case "Seccomp":
			r.Seccomp = value
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(mounts)) {
		fields := strings.Fields(line)
		r.Mounts[fields[4]] = fields[5] + "," + fields[len(fields)-1]
	}
	first, err := os.ReadFile("/proc/1/comm")
	if err != nil {
		return err
	}
	r.PID1 = strings.TrimSpace(string(first))
	entries, err := os.ReadDir("/sys/class/net")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		r.Interfaces = append(r.Interfaces, entry.Name())
	}
	limits, err := os.ReadFile("/proc/self/limits")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(limits)) {
		if rest, ok := strings.CutPrefix(line, "Max open files"); ok {
			r.Files, _ = strconv.ParseInt(strings.Fields(rest)[1], 10, 64)
		}
	}
	return nil
}

// readLimits reads the control group, in its first or second version.
func (r *Report) readLimits() {
	const root = "/sys/fs/cgroup/"
	r.Memory = number(root+"memory.max", root+"memory/memory.limit_in_bytes")
	r.MemorySwap = number(root + "memory/memory.memsw.limit_in_bytes")
	if swap, err := strconv.ParseInt(content(root+"memory.swap.max"), 10, 64); err == nil {
		r.MemorySwap = r.Memory + swap
	}
	r.PIDs = number(root+"pids.max", root+"pids/pids.max")
	r.CPUShares = number(root + "cpu/cpu.shares")
	if fields := strings.Fields(content(root + "cpu.max")); len(fields) == 2 {
		r.CPUs = ratio(fields[0], fields[1])
		return
	}
	r.CPUs = ratio(content(root+"cpu/cpu.cfs_quota_us"), content(root+"cpu/cpu.cfs_period_us"))
}

func content(name string) string {
	read, err := os.ReadFile(name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(read))
}

func number(names ...string) int64 {
	for _, name := range names {
		if n, err := strconv.ParseInt(content(name), 10, 64); err == nil {
			return n
		}
	}
	return 0
}

func ratio(quota, period string) float64 {
	q, errQ := strconv.ParseFloat(quota, 64)
	p, errP := strconv.ParseFloat(period, 64)
	if errQ != nil || errP != nil || p <= 0 || q < 0 {
		return 0
	}
	return q / p
}
