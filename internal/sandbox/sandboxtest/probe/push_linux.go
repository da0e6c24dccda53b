package probe

import (
	"runtime"
	"runtime/debug"
	"sync"
	"syscall"
	"time"
)

// trespass tries what needs a capability, or a privilege that a program could
// gain, or a call that the default seccomp profile has not.
func trespass(refused map[string]string) {
	refused["mount"] = reason(syscall.Mount("none", "/tmp", "tmpfs", 0, ""))
	refused["make a device"] = reason(syscall.Mknod("/tmp/device", syscall.S_IFBLK|0o600, 0))
	refused["give a file away"] = reason(give("/tmp/given"))
	refused["become another user"] = reason(syscall.Setuid(12345))
	refused["change the root"] = reason(syscall.Chroot("/tmp"))
	refused["name the host"] = reason(syscall.Sethostname([]byte("mine")))
	refused["open a raw socket"] = reason(raw())
	refused["make a namespace"] = reason(syscall.Unshare(syscall.CLONE_NEWUSER))
	refused["set the clock"] = reason(syscall.Settimeofday(&syscall.Timeval{Sec: 1}))
}

func give(name string) error {
	file, err := syscall.Open(name, syscall.O_CREAT|syscall.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	_ = syscall.Close(file)
	defer func() { _ = syscall.Unlink(name) }()
	return syscall.Chown(name, 12345, 12345)
}

func raw() error {
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_RAW, syscall.IPPROTO_ICMP)
	if err == nil {
		_ = syscall.Close(socket)
	}
	return err
}

// work keeps all processors busy for a while, and returns how many seconds of
// them it got for each second.
func work(wall time.Duration) float64 {
	before, begun := used(), time.Now()
	var group sync.WaitGroup
	for range runtime.NumCPU() {
		group.Go(func() {
			for time.Since(begun) < wall {
			}
		})
	}
	group.Wait()
	return (used() - before).Seconds() / time.Since(begun).Seconds()
}

func used() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// start forks children that do nothing until it cannot. Go's runtime ends a
// program that gets no thread, so that nothing may need one meanwhile.
func start() Stop {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	children := make([]int, 0, mostStarted)
	stop := Stop{}
	for len(children) < mostStarted {
		pid, _, failed := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
		if failed != 0 {
			stop.Reason = failed.Error()
			break
		}
		if pid == 0 {
			// The child has no runtime: it only waits for its end.
			for {
				_, _, _ = syscall.RawSyscall6(syscall.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
			}
		}
		children = append(children, int(pid))
	}
	stop.Count = int64(len(children))
	for _, child := range children {
		_ = syscall.Kill(child, syscall.SIGKILL)
	}
	for _, child := range children {
		_, _ = syscall.Wait4(child, nil, 0, nil)
	}
	return stop
}
