package launch

import (
	"slices"
	"strconv"
	"strings"

	"github.com/docker/go-units"

	"github.com/dockgate/dockgate/internal/catalog"
)

// docker reads a command of the Docker command line.
func (l *launcher) docker(args []string) {
	for i := 0; i < len(args); i++ {
		switch name, _, next := flag(args, i); {
		case slices.Contains([]string{"-H", "--host", "-c", "--context", "--config", "--tlscacert", "--tlscert", "--tlskey"}, name):
			l.unsupported("uses an engine of its own (%s); name it with --host or --context of dockgate", name)
			return
		case name == "-l" || name == "--log-level":
			i = next
		case strings.HasPrefix(name, "-"):
		case args[i] == "container":
		case args[i] == "run" || args[i] == "create":
			l.run(args[i+1:])
			return
		case args[i] == "exec":
			l.exec(args[i+1:])
			return
		case args[i] == "mcp":
			l.unsupported("runs Docker's own gateway; import its servers with: dockgate import docker-toolkit")
			return
		default:
			l.unsupported("runs docker %s on the host", args[i])
			return
		}
	}
	l.unsupported("names no command of docker")
}

// options reads flags of docker run or docker exec until the first argument,
// and returns where that is; -1 if a flag is not known.
func (l *launcher) options(args []string, one func(name, value string), switches, values []string) int {
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--":
			return i + 1
		case !strings.HasPrefix(arg, "-") || arg == "-":
			return i
		case strings.HasPrefix(arg, "--"):
			name, value, assigned := strings.Cut(arg, "=")
			switch {
			case slices.Contains(switches, name):
				if !assigned || value == "true" {
					one(name, "true")
				}
			case !slices.Contains(values, name):
				l.unsupported("uses the flag %s of docker, which is not known", name)
				return -1
			case !assigned && i+1 >= len(args):
				l.unsupported("has no value for the flag %s", arg)
				return -1
			default:
				if !assigned {
					i++
					value = args[i]
				}
				one(name, value)
			}
		default:
			var ok bool
			if i, ok = l.short(args, i, one, switches, values); !ok {
				return -1
			}
		}
	}
	return len(args)
}

// short reads flags of one letter: -it, -e NAME, -eNAME.
func (l *launcher) short(args []string, i int, one func(name, value string), switches, values []string) (int, bool) {
	for at := 1; at < len(args[i]); at++ {
		name := "-" + args[i][at:at+1]
		if slices.Contains(switches, name) {
			one(name, "true")
			continue
		}
		if !slices.Contains(values, name) {
			l.unsupported("uses the flag %s of docker, which is not known", name)
			return i, false
		}
		value := strings.TrimPrefix(args[i][at+1:], "=")
		if value == "" {
			if i++; i >= len(args) {
				l.unsupported("has no value for the flag %s", name)
				return i, false
			}
			value = args[i]
		}
		one(name, value)
		return i, true
	}
	return i, true
}

func runSwitches() []string {
	return []string{
		"-i", "--interactive", "-t", "--tty", "-d", "--detach", "--rm", "--init", "--privileged", "--read-only", "-P", "--publish-all",
		"--no-healthcheck", "--sig-proxy", "--oom-kill-disable", "-q", "--quiet", "--disable-content-trust", "--use-api-socket",
	}
}

func runValues() []string {
	return []string{
		"-e", "--env", "--env-file", "-v", "--volume", "--mount", "--network", "--net", "-m", "--memory", "--memory-swap", "--memory-reservation",
		"--memory-swappiness", "--cpus", "-c", "--cpu-shares", "--cpuset-cpus", "--cpuset-mems", "--cpu-period", "--cpu-quota", "--pids-limit",
		"-u", "--user", "--entrypoint", "-w", "--workdir", "--name", "-p", "--publish", "--expose", "--tmpfs", "--shm-size", "--add-host",
		"-h", "--hostname", "--domainname", "-l", "--label", "--label-file", "--annotation", "--pull", "--platform", "--cap-add", "--cap-drop",
		"--security-opt", "--pid", "--ipc", "--uts", "--userns", "--cgroupns", "--cgroup-parent", "--device", "--device-cgroup-rule",
		"--device-read-bps", "--device-write-bps", "--gpus", "--dns", "--dns-option", "--dns-search", "--log-driver", "--log-opt", "--restart",
		"--stop-signal", "--stop-timeout", "--ulimit", "--sysctl", "--runtime", "--group-add", "--health-cmd", "--health-interval",
		"--health-retries", "--health-start-period", "--health-start-interval", "--health-timeout", "--isolation", "--link", "--mac-address",
		"--ip", "--ip6", "--network-alias", "--net-alias", "--volume-driver", "--volumes-from", "--cidfile", "-a", "--attach", "--detach-keys",
		"--blkio-weight", "--storage-opt", "--oom-score-adj", "--kernel-memory",
	}
}

// run reads "docker run": the flags, the image, its arguments.
func (l *launcher) run(args []string) {
	l.Network.Mode = catalog.NetworkFull // as the engine has it where nothing is said
	at := l.options(args, l.runFlag, runSwitches(), runValues())
	switch {
	case at < 0:
	case at >= len(args):
		l.unsupported("names no image")
	case refers(args[at]):
		l.unsupported("names its image by a variable: %s", args[at])
	default:
		l.Image = args[at]
		l.Command = l.arguments(args[at+1:])
	}
}

// runFlag takes one flag of docker run into the entry. What is not mentioned
// here asks for less than every container has, or for nothing that matters.
func (l *launcher) runFlag(name, value string) {
	switch name {
	case "-e", "--env":
		l.passed(value)
	case "--env-file":
		l.remark("--env-file %s is kept out: name its variables in the entry", value)
	case "-v", "--volume":
		l.volume(value)
	case "--mount":
		l.mount(value)
	case "--tmpfs":
		place, _, _ := strings.Cut(value, ":")
		l.Tmpfs = append(l.Tmpfs, place)
	case "--network", "--net":
		l.network(name, value)
	case "-m", "--memory":
		l.size(name, value, &l.Limits.Memory)
	case "--shm-size":
		l.size(name, value, &l.Limits.Shm)
	case "--cpus":
		if cpus, err := strconv.ParseFloat(value, 64); err == nil && cpus > 0 {
			l.Limits.CPUs = cpus
		}
	case "--pids-limit":
		if pids, err := strconv.ParseInt(value, 10, 64); err == nil && pids > 0 {
			l.Limits.PIDs = pids
		}
	case "-u", "--user":
		l.User = l.text(value)
	case "--entrypoint":
		if value != "" {
			l.Entrypoint = []string{l.text(value)}
		}
	case "-w", "--workdir":
		l.WorkingDir = value
	case "--add-host":
		l.ExtraHosts = append(l.ExtraHosts, strings.Replace(value, "=", ":", 1))
	case "--security-opt":
		if !strings.HasPrefix(value, "no-new-privileges") {
			l.keptOut(name, value)
		}
	case "--pid", "--ipc", "--uts", "--userns", "--cgroupns":
		if value != "private" && value != "none" {
			l.keptOut(name, value)
		}
	case "--privileged", "-P", "--publish-all", "-d", "--detach", "--oom-kill-disable", "--use-api-socket":
		l.keptOut(name, "")
	case "--cap-add", "--device", "--device-cgroup-rule", "--gpus", "--volumes-from", "--sysctl", "--cgroup-parent", "--group-add", "--runtime",
		"-p", "--publish", "--platform", "--link", "--dns", "--dns-option", "--dns-search", "--ip", "--ip6", "--oom-score-adj", "--volume-driver",
		"--storage-opt", "--isolation":
		l.keptOut(name, value)
	}
}

// keptOut says that a flag is not in the entry: it would weaken the sandbox,
// or has no meaning in it.
func (l *launcher) keptOut(name, value string) {
	if value != "" {
		name += " " + value
	}
	l.remark("%s is kept out", name)
}

// passed takes a variable of -e: NAME=value, or NAME from the environment of
// the command.
func (l *launcher) passed(value string) {
	name, literal, assigned := strings.Cut(value, "=")
	if assigned {
		l.variable(name, literal)
		return
	}
	for _, v := range l.command.Env {
		if v.Name == name {
			if v.Value == "" {
				l.secret(name, name, "", false)
			}
			l.variable(name, v.Value)
			return
		}
	}
	l.secret(name, name, "", true)
}

func (l *launcher) network(name, value string) {
	switch value {
	case "none":
		l.Network.Mode = catalog.NetworkNone
	case "bridge", "default":
	case "host":
		l.keptOut(name, value)
		l.remark("instead of the host's network it asks for the engine's: what listens on localhost is not reached")
	default:
		l.keptOut(name, value)
	}
}

func (l *launcher) size(name, value string, to *int64) {
	size, err := units.RAMInBytes(value)
	if err != nil || size <= 0 {
		l.keptOut(name, value)
		return
	}
	*to = size
}

// volume reads "source:target[:options]", or a target alone, which is a volume
// without a name.
func (l *launcher) volume(value string) {
	drive := ""
	if hasDrive(value) && len(splitVolume(value)) > 2 {
		drive, value = value[:2], value[2:]
	}
	pieces := splitVolume(value)
	switch len(pieces) {
	case 1:
		l.Tmpfs = append(l.Tmpfs, pieces[0])
		l.remark("the volume %s has no name, and is forgotten when the server ends", value)
	case 2, 3:
		m := catalog.Mount{Source: drive + pieces[0], Target: pieces[1]}
		if len(pieces) == 3 {
			m.ReadOnly = slices.Contains(strings.Split(pieces[2], ","), "ro")
		}
		l.addMount(m)
	default:
		l.unsupported("has the volume %s, want source:target[:ro]", drive+value)
	}
}

// hasDrive reports that a path begins with a drive of Windows, such as C:\.
func hasDrive(path string) bool {
	letter := len(path) > 2 && ('a' <= path[0]|0x20 && path[0]|0x20 <= 'z')
	return letter && path[1] == ':' && (path[2] == '\\' || path[2] == '/')
}

// splitVolume splits at colons that are not within ${…}.
func splitVolume(value string) []string {
	var all []string
	depth, start := 0, 0
	for i := range len(value) {
		switch value[i] {
		case '{':
			depth++
		case '}':
			depth--
		case ':':
			if depth <= 0 {
				all = append(all, value[start:i])
				start = i + 1
			}
		}
	}
	return append(all, value[start:])
}

// mount reads "type=bind,source=…,target=…[,readonly]".
func (l *launcher) mount(value string) {
	var m catalog.Mount
	kind := "volume"
	for _, option := range strings.Split(value, ",") {
		name, text, _ := strings.Cut(option, "=")
		switch strings.ToLower(name) {
		case "type":
			kind = text
		case "source", "src":
			m.Source = text
		case "target", "dst", "destination":
			m.Target = text
		case "readonly", "ro":
			m.ReadOnly = text == "" || text == "true" || text == "1"
		}
	}
	switch {
	case kind == "tmpfs" || (kind == "volume" && m.Source == ""):
		l.Tmpfs = append(l.Tmpfs, m.Target)
	case kind == "bind" || kind == "volume":
		l.addMount(m)
	default:
		l.keptOut("--mount", value)
	}
}

// addMount takes a mount into the entry. A source that is no path is the name
// of a volume; the engine's socket is never mounted.
func (l *launcher) addMount(m catalog.Mount) {
	base := m.Source[strings.LastIndexAny(m.Source, `/\`)+1:]
	if base == "docker.sock" || base == "podman.sock" || strings.Contains(m.Source, "docker_engine") {
		l.remark("%s is kept out: whoever has the engine's socket has the machine", m.Source)
		return
	}
	m.Target = l.text(m.Target)
	if !strings.ContainsAny(m.Source, `/\~$.`) {
		m.Volume, m.Source = m.Source, ""
	} else {
		m.Source = l.text(m.Source)
		if strings.HasPrefix(m.Source, ".") && l.command.Dir != "" {
			m.Source = clean(l.command.Dir + "/" + m.Source)
		}
	}
	l.Mounts = append(l.Mounts, m)
}

// exec reads "docker exec": a process in a container that the user runs.
func (l *launcher) exec(args []string) {
	var env []string
	at := l.options(args, func(name, value string) {
		switch name {
		case "-e", "--env":
			env = append(env, value)
		case "--env-file":
			l.remark("--env-file %s is kept out: name its variables in the entry", value)
		case "-u", "--user":
			l.User = l.text(value)
		case "-w", "--workdir":
			l.WorkingDir = value
		case "--privileged", "-d", "--detach":
			l.keptOut(name, "")
		}
	}, []string{"-i", "--interactive", "-t", "--tty", "-d", "--detach", "--privileged"},
		[]string{"-e", "--env", "--env-file", "-u", "--user", "-w", "--workdir", "--detach-keys"})
	switch {
	case at < 0:
	case at+1 >= len(args):
		l.unsupported("names no container and command")
	case refers(args[at]):
		l.unsupported("names its container by a variable: %s", args[at])
	default:
		l.Exec = &catalog.Exec{Container: args[at]}
		l.Command = l.arguments(args[at+1:])
		for _, value := range env {
			l.passed(value)
		}
	}
}
