package catalog

import (
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/dockgate/dockgate/internal/catalog/setting"
)

// source checks that the entry says in exactly one way what it runs.
func (v *validator) source() {
	var given []string
	if v.Image != "" {
		given = append(given, "image")
		if problem := imageProblem(v.Image); problem != "" {
			v.report("image", "%s", problem)
		}
	}
	if v.Program != nil {
		given = append(given, "program")
		v.program()
	}
	if v.Exec != nil {
		given = append(given, "exec")
		v.exec()
	}
	if v.Remote != nil {
		given = append(given, "remote")
		v.remote()
	}
	if v.Unsupported != "" {
		given = append(given, "unsupported")
	}
	if slices.ContainsFunc(v.Tools, func(t ToolSnapshot) bool { return t.Run != nil }) {
		given = append(given, "tools that have a run")
	}
	switch {
	case len(given) == 0:
		v.report("", "needs one of image, program, exec, remote and unsupported")
	case len(given) > 1:
		v.report("", "has %s; only one of them may be", strings.Join(given, " and "))
	}
	if v.HTTP != nil {
		v.http()
	}
}

var (
	npmName      = regexp.MustCompile(`^(@[a-z0-9~._-]+/)?[A-Za-z0-9~._-]+$`)
	pypiName     = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?(\[[A-Za-z0-9,._-]+\])?$`)
	source       = regexp.MustCompile(`^(git\+https://|https://|github:)[A-Za-z0-9@:/._~#%+=&?-]+$`)
	version      = regexp.MustCompile(`^[A-Za-z0-9^~<>=!*][A-Za-z0-9.^~<>=!*+,_ -]*$`)
	indexAddress = regexp.MustCompile(`^https?://[^\s/?#@]+(/[^\s?#@]*)?$`)
	binaryName   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
	moduleName   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$`)
	container    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)
)

func (v *validator) program() {
	p := v.Program
	if p.Runtime != NPX && p.Runtime != UVX {
		v.report("program.runtime", "is %q, want %s or %s", p.Runtime, NPX, UVX)
	}
	names := npmName
	if p.Runtime == UVX {
		names = pypiName
	}
	switch {
	case p.Package == "" && p.File == "":
		v.report("program", "needs one of package and file")
	case p.Package != "" && p.File != "":
		v.report("program", "has package and file; only one of them may be")
	case p.File != "" && (p.Version != "" || p.With != nil || p.Binary != "" || p.Module != "" || p.Index != ""):
		v.report("program", "is a file; version, with, binary, module and index are for packages")
	case p.Package != "" && !names.MatchString(p.Package) && !source.MatchString(p.Package):
		v.report("program.package", "is %q, which is not the name of a package", p.Package)
	case p.Package != "" && p.Folder != "":
		v.report("program.folder", "is for a file")
	case p.File != "" && p.Folder == "":
		v.report("program", "has no folder, which is mounted for the file")
	case p.File != "" && !strings.HasPrefix(p.File, strings.TrimRight(p.Folder, `/\`)):
		v.report("program.folder", "does not hold the file")
	}
	if p.Version != "" && !version.MatchString(p.Version) {
		v.report("program.version", "is %q, which is not a version", p.Version)
	}
	for i, with := range p.With {
		if with == "" || strings.HasPrefix(with, "-") || strings.ContainsAny(with, " \t\r\n\x00") {
			v.report(fmt.Sprintf("program.with[%d]", i), "is %q, which is not a package", with)
		}
	}
	if p.Index != "" && !indexAddress.MatchString(p.Index) {
		v.report("program.index", "is not the address of a registry of packages: http or https, without a name or password")
	}
	if p.Binary != "" && !binaryName.MatchString(p.Binary) {
		v.report("program.binary", "is %q, which is not the name of a program", p.Binary)
	}
	if p.Module != "" && (p.Runtime != UVX || !moduleName.MatchString(p.Module)) {
		v.report("program.module", "is %q, which is not a Python module", p.Module)
	}
	if v.Entrypoint != nil {
		v.report("entrypoint", "is for images; a program's arguments are its command")
	}
}

func (v *validator) exec() {
	if !container.MatchString(v.Exec.Container) {
		v.report("exec.container", "is %q, which is not the name of a container", v.Exec.Container)
	}
	if len(v.Command) == 0 {
		v.report("exec", "has no command to run in the container")
	}
	v.foreign("is for containers of ours, and this one runs already", false)
}

func (v *validator) http() {
	h := v.HTTP
	if h.Port < 1 || h.Port > 65535 {
		v.report("http.port", "is %d, which is not a port", h.Port)
	}
	if !strings.HasPrefix(h.Path, "/") {
		v.report("http.path", "is %q, want a path such as /mcp", h.Path)
	}
	if h.Transport != StreamableHTTP && h.Transport != SSE {
		v.report("http.transport", "is %q, want %s or %s", h.Transport, StreamableHTTP, SSE)
	}
	if v.Remote != nil || v.Exec != nil {
		v.report("http", "is for servers in containers of ours")
	}
}

func (v *validator) remote() {
	u, err := url.Parse(v.Remote.URL)
	switch {
	case v.Remote.URL == "":
		v.report("remote.url", "is missing")
	case err != nil:
		v.report("remote.url", "is not a URL: %v", err)
	case u.Scheme != "https" && u.Scheme != "http", u.Host == "":
		v.report("remote.url", "is %q, want an https or http URL", v.Remote.URL)
	case u.User != nil:
		v.report("remote.url", "holds a user or password; put it into a secret and a header")
	case strings.Contains(u.Path, "${"), strings.Contains(u.Fragment, "${"):
		v.report("remote.url", "may use secrets only in its query")
	default:
		v.references("remote.url", u.RawQuery)
	}
	if v.Remote.Transport != StreamableHTTP && v.Remote.Transport != SSE {
		v.report("remote.transport", "is %q, want %s or %s", v.Remote.Transport, StreamableHTTP, SSE)
	}
	for name, header := range v.Remote.Headers {
		field := "remote.headers." + name
		if !headerName.MatchString(name) {
			v.report(field, "is not the name of a header")
		}
		if strings.ContainsAny(header, "\r\n\x00") {
			v.report(field, "holds a line break")
		}
		v.references(field, header)
	}
	for i, address := range v.Remote.Addresses {
		_, notAddress := netip.ParseAddr(address)
		if _, err := netip.ParsePrefix(address); err != nil && notAddress != nil {
			v.report(fmt.Sprintf("remote.addresses[%d]", i), "is %q, want an address or a prefix such as 10.1.0.0/16", address)
		}
	}
	v.foreign("is for containers, and this server is remote", true)
}

// foreign refuses the fields that only a container of ours can have.
func (v *validator) foreign(reason string, process bool) {
	for _, field := range []struct {
		name  string
		given bool
	}{
		{"entrypoint", v.Entrypoint != nil},
		{"command", v.Command != nil && process},
		{"working_dir", v.WorkingDir != "" && process},
		{"user", v.User != "" && process},
		{"env", v.Env != nil && process},
		{"network", v.Network.Mode != "" && v.Network.Mode != NetworkNone},
		{"extra_hosts", v.ExtraHosts != nil},
		{"mounts", v.Mounts != nil},
		{"tmpfs", v.Tmpfs != nil},
		{"limits", v.Limits != Limits{}},
		{"helpers", v.Helpers != nil},
	} {
		if field.given {
			v.report(field.name, "%s", reason)
		}
	}
}

func (v *validator) helpers() {
	names := make(map[string]bool)
	for i, h := range v.Helpers {
		prefix := fmt.Sprintf("helpers[%d].", i)
		switch {
		case !hostLabel.MatchString(h.Name):
			v.report(prefix+"name", "is %q, which is not the name of a host", h.Name)
		case names[h.Name]:
			v.report(prefix+"name", "%q is here twice", h.Name)
		}
		names[h.Name] = true
		if problem := imageProblem(h.Image); problem != "" {
			v.report(prefix+"image", "%s", problem)
		}
		v.user(prefix+"user", h.User)
		if h.WorkingDir != "" && !path.IsAbs(h.WorkingDir) {
			v.report(prefix+"working_dir", "is %q, want an absolute path", h.WorkingDir)
		}
		v.secrets(prefix, h.Secrets)
		v.variables(prefix, h.Env, h.Secrets)
		v.places(prefix+"tmpfs", h.Tmpfs)
		v.bounds(prefix, h.Limits)
		v.mounts(prefix, h.Mounts)
		if !slices.Contains([]Ready{ReadyStarted, ReadyHealthy, ReadyCompleted}, h.Ready) {
			v.report(prefix+"ready", "is %q, want started, healthy or completed", h.Ready)
		}
		if h.Health != nil && len(h.Health.Test) == 0 {
			v.report(prefix+"health", "has no test")
		}
	}
}

func (v *validator) tools() {
	seen := make(map[string]bool)
	for i, t := range v.Tools {
		field := fmt.Sprintf("tools[%d]", i)
		switch {
		case t.Name == "":
			v.report(field, "has no name")
		case seen[t.Name]:
			v.report(field+".name", "%q is listed twice", t.Name)
		}
		seen[t.Name] = true
		if v.Runs() == KindTools && t.Run == nil {
			v.report(field, "has no run, as other tools of this server have")
		}
		if t.Run != nil {
			v.toolRun(field, t)
		}
	}
}

// toolRun checks the container of one call of a tool.
func (v *validator) toolRun(field string, t ToolSnapshot) {
	if problem := imageProblem(t.Run.Image); problem != "" {
		v.report(field+".run.image", "%s", problem)
	}
	arguments, problems := setting.Compile(t.InputSchema)
	if problems != nil { // any schema is a tool's own affair; then nothing is known of its arguments
		arguments, _ = setting.Compile(setting.Open())
	}
	v.arguments = &arguments
	defer func() { v.arguments = nil }()
	for i, text := range t.Run.Entrypoint {
		v.template(fmt.Sprintf("%s.run.entrypoint[%d]", field, i), text)
	}
	for i, text := range t.Run.Command {
		v.template(fmt.Sprintf("%s.run.command[%d]", field, i), text)
	}
	v.user(field+".run.user", t.Run.User)
	v.template(field+".run.user", t.Run.User)
	v.mounts(field+".run.", t.Run.Mounts)
}
