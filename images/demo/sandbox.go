package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/docker/go-units"
)

// outside is an address of the public internet that answers where anything does.
const outside = "1.1.1.1:443"

// outsideTime bounds the attempt to reach it.
const outsideTime = time.Second

// A report is what the process can see of its own container.
type report struct {
	Hostname        string  `json:"hostname"`
	UID             int     `json:"uid"`
	GID             int     `json:"gid"`
	Capabilities    string  `json:"capabilities" jsonschema:"The effective capabilities as a bit mask in hexadecimal; only zeros are none."`
	NoNewPrivileges bool    `json:"no_new_privileges"`
	Seccomp         bool    `json:"seccomp" jsonschema:"Whether system calls are filtered."`
	Limits          limits  `json:"limits"`
	ReadOnlyRoot    bool    `json:"read_only_root"`
	Mounts          []mount `json:"mounts" jsonschema:"The root, and what is mounted for the server; not the engine's own mounts below /proc, /sys and /dev."`
	// Writable has the mount points in which a file could be made.
	Writable []string `json:"writable"`
	Network  network  `json:"network"`
}

// limits are those of the control group; 0 is none.
type limits struct {
	Memory int64   `json:"memory" jsonschema:"In bytes; 0 is no limit."`
	CPUs   float64 `json:"cpus" jsonschema:"In processors; 0 is no limit."`
	PIDs   int64   `json:"pids" jsonschema:"Processes and threads; 0 is no limit."`
}

type mount struct {
	Path     string `json:"path"`
	Type     string `json:"type"`
	ReadOnly bool   `json:"read_only"`
	Size     string `json:"size,omitempty" jsonschema:"The limit of a file system in memory."`
}

type network struct {
	Interfaces []string `json:"interfaces"`
	Tried      string   `json:"tried"`
	Reached    bool     `json:"reached"`
	Error      string   `json:"error,omitempty"`
}

func look(ctx context.Context) (report, error) {
	r := report{UID: os.Getuid(), GID: os.Getgid(), Limits: readLimits("/sys/fs/cgroup")}
	var err error
	if r.Hostname, err = os.Hostname(); err != nil {
		return report{}, err
	}
	if err := r.readStatus(); err != nil {
		return report{}, err
	}
	mountinfo, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return report{}, err
	}
	r.Mounts = parseMounts(string(mountinfo))
	for _, m := range r.Mounts {
		if m.Path == "/" {
			r.ReadOnlyRoot = m.ReadOnly
		}
		if writable(m.Path) {
			r.Writable = append(r.Writable, m.Path)
		}
	}
	r.Network, err = reach(ctx)
	return r, err
}

func (r *report) readStatus() error {
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
			r.NoNewPrivileges = value == "1"
		case "Seccomp":
			r.Seccomp = value != "0"
		}
	}
	return nil
}

// parseMounts reads /proc/self/mountinfo, see proc_pid_mountinfo(5).
func parseMounts(mountinfo string) []mount {
	var mounts []mount
	for line := range strings.Lines(mountinfo) {
		before, after, ok := strings.Cut(line, " - ")
		fields, special := strings.Fields(before), strings.Fields(after)
		if !ok || len(fields) < 6 || len(special) < 3 {
			continue
		}
		path := fields[4]
		if path != "/dev/shm" && slices.ContainsFunc([]string{"/proc", "/sys", "/dev"}, func(top string) bool {
			return path == top || strings.HasPrefix(path, top+"/")
		}) {
			continue
		}
		m := mount{Path: path, Type: special[0], ReadOnly: option(fields[5], "ro") == "ro"}
		if m.Type == "tmpfs" {
			m.Size = strings.TrimPrefix(option(special[2], "size"), "size=")
		}
		mounts = append(mounts, m)
	}
	return mounts
}

// option returns the option of that name from a list with commas, or "".
func option(list, name string) string {
	for o := range strings.SplitSeq(list, ",") {
		if o == name || strings.HasPrefix(o, name+"=") {
			return o
		}
	}
	return ""
}

// readLimits reads the control group in its second or first version.
func readLimits(root string) limits {
	l := limits{
		Memory: number(filepath.Join(root, "memory.max"), filepath.Join(root, "memory", "memory.limit_in_bytes")),
		PIDs:   number(filepath.Join(root, "pids.max"), filepath.Join(root, "pids", "pids.max")),
	}
	if l.Memory > math.MaxInt64-1<<20 {
		l.Memory = 0 // how the first version says "none"
	}
	quota, period, ok := strings.Cut(content(filepath.Join(root, "cpu.max")), " ")
	if !ok {
		quota = content(filepath.Join(root, "cpu", "cpu.cfs_quota_us"))
		period = content(filepath.Join(root, "cpu", "cpu.cfs_period_us"))
	}
	q, errQ := strconv.ParseFloat(quota, 64)
	p, errP := strconv.ParseFloat(period, 64)
	if errQ == nil && errP == nil && q > 0 && p > 0 {
		l.CPUs = q / p
	}
	return l
}

// number returns what the first file that holds a number says.
func number(files ...string) int64 {
	for _, file := range files {
		if n, err := strconv.ParseInt(content(file), 10, 64); err == nil {
			return n
		}
	}
	return 0
}

func content(file string) string {
	read, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(read))
}

// writable tries to make a file. Mounts that are files are opened.
func writable(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	if !info.IsDir() {
		file, err := os.OpenFile(path, os.O_WRONLY, 0)
		return err == nil && file.Close() == nil
	}
	file, err := os.CreateTemp(path, ".dockgate-demo-*")
	if err != nil {
		return false
	}
	return errors.Join(file.Close(), os.Remove(file.Name())) == nil
}

// reach lists the interfaces and tries to get out.
func reach(ctx context.Context) (network, error) {
	n := network{Interfaces: []string{}, Tried: outside}
	interfaces, err := net.Interfaces()
	if err != nil {
		return n, err
	}
	for _, i := range interfaces {
		n.Interfaces = append(n.Interfaces, i.Name)
	}
	if err := dial(ctx, outside); err != nil {
		n.Error = err.Error()
	} else {
		n.Reached = true
	}
	return n, nil
}

func dial(ctx context.Context, address string) error {
	dialer := net.Dialer{Timeout: outsideTime}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return conn.Close()
}

// String is the report for people.
func (r report) String() string {
	var b strings.Builder
	line := func(label, format string, args ...any) {
		fmt.Fprintf(&b, "%-14s"+format+"\n", append([]any{label}, args...)...)
	}
	line("user", "%d:%d on %s", r.UID, r.GID, r.Hostname)
	line("capabilities", "%s", orNone(strings.Trim(r.Capabilities, "0")))
	line("privileges", "new ones %s", map[bool]string{true: "refused", false: "possible"}[r.NoNewPrivileges])
	line("system calls", "%s", map[bool]string{true: "filtered", false: "not filtered"}[r.Seccomp])
	line("memory", "%s", orNoLimit(units.BytesSize(float64(r.Limits.Memory)), float64(r.Limits.Memory)))
	line("processors", "%s", orNoLimit(strconv.FormatFloat(r.Limits.CPUs, 'g', -1, 64), r.Limits.CPUs))
	line("processes", "%s", orNoLimit(strconv.FormatInt(r.Limits.PIDs, 10), float64(r.Limits.PIDs)))
	line("root", "%s", map[bool]string{true: "read-only", false: "writable"}[r.ReadOnlyRoot])
	for _, m := range r.Mounts {
		if m.Path == "/" {
			continue
		}
		traits := []string{m.Type}
		if m.ReadOnly {
			traits = append(traits, "read-only")
		}
		if m.Size != "" {
			traits = append(traits, "size "+m.Size)
		}
		line("mount", "%s (%s)", m.Path, strings.Join(traits, ", "))
	}
	line("writable", "%s", orNone(strings.Join(r.Writable, ", ")))
	line("network", "%s", orNone(strings.Join(r.Network.Interfaces, ", ")))
	line("outside", "%s %s", r.Network.Tried, map[bool]string{true: "reached", false: "not reached"}[r.Network.Reached])
	return b.String()
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

func orNoLimit(text string, limit float64) string {
	if limit <= 0 {
		return "no limit"
	}
	return text
}
