package launch

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/dockgate/dockgate/internal/catalog"
)

// program makes the entry of a package or a file, with its arguments. As on
// the host it has the network, unless the person grants less; and the folders
// that its arguments name, where they exist.
func (l *launcher) program(p catalog.Program, args []string) {
	if holdsCredentials(p) {
		l.unsupported("names its package with a password or token, which is not copied")
		return
	}
	for _, name := range append([]string{p.Package}, p.With...) {
		if p.Runtime == catalog.UVX && strings.Contains(name, "://") && !strings.HasSuffix(name, ".whl") {
			l.unsupported("installs %s from its source, which runs it before it is approved; name a published package or a wheel", name)
			return
		}
	}
	if p.File == "" {
		l.index(&p)
	}
	l.Program = &p
	l.Command = l.arguments(args)
	l.Network.Mode = catalog.NetworkFull
	l.variables()
	for i, arg := range l.Command {
		folder := arg
		if _, value, ok := strings.Cut(arg, "="); ok && strings.HasPrefix(arg, "-") {
			folder = value
		}
		if p.Folder != "" && within(folder, p.Folder) {
			continue // mounted already
		}
		known := slices.ContainsFunc(l.Mounts, func(m catalog.Mount) bool { return m.Target == folder })
		if strings.HasPrefix(folder, "/") && folder != "/" && !strings.Contains(folder, "{{") && !known && l.around.Exists(folder) {
			l.Mounts = append(l.Mounts, catalog.Mount{Source: folder, Target: folder})
			l.remark("argument %d names %s on the host, which is mounted there", i+1, folder)
		}
	}
}

// index takes the registry that a package comes from out of the variables, as
// the installer would read it there; a flag has named it before them. A package
// of the same name elsewhere may be somebody else's, so what cannot be taken
// over is not left out.
func (l *launcher) index(p *catalog.Program) {
	names := []string{"UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL"}
	if p.Runtime == catalog.NPX {
		names = []string{"NPM_CONFIG_REGISTRY"}
	}
	l.command.Env = slices.DeleteFunc(slices.Clone(l.command.Env), func(v catalog.Variable) bool {
		known := slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(v.Name, name) })
		if known && p.Index == "" {
			p.Index = v.Value
		}
		return known
	})
	if p.Runtime == catalog.UVX {
		if name, rest, named := strings.Cut(p.Index, "="); named && !strings.ContainsAny(name, ":/") {
			p.Index = rest // as uv lets an index have a name
		}
	}
	if refers(p.Index) || isSecret(p.Index) || strings.Contains(p.Index, "@") {
		l.unsupported("names a registry of packages with a variable, a password or a token, which is not copied; "+
			"take it out, and set %s in install.env of the configuration", machineIndex(p.Runtime))
	}
}

// machineIndex is the variable that names a registry for the whole machine.
func machineIndex(runtime string) string {
	if runtime == catalog.NPX {
		return "NPM_CONFIG_REGISTRY"
	}
	return "PIP_INDEX_URL"
}

func within(child, parent string) bool {
	return child == parent || strings.HasPrefix(child, strings.TrimRight(parent, `/\`)+"/")
}

// flag splits "--name=value"; without one, the value is the next argument.
func flag(args []string, i int) (name, value string, next int) {
	name, value, assigned := strings.Cut(args[i], "=")
	if assigned {
		return name, value, i
	}
	if i+1 < len(args) {
		return name, args[i+1], i + 1
	}
	return name, "", i
}

// npx reads "[-y] [-p package]… package[@version] args".
func (l *launcher) npx(args []string) {
	var packages []string
	var index string
	i := 0
	for ; i < len(args) && strings.HasPrefix(args[i], "-") && args[i] != "--"; i++ {
		name, value, next := flag(args, i)
		switch name {
		case "-y", "--yes", "-q", "--quiet", "--silent", "-s", "--no-install", "--prefer-offline", "--prefer-online", "--no", "--bun", "--loglevel":
			if name == "--loglevel" {
				i = next
			}
		case "-p", "--package":
			packages = append(packages, value)
			i = next
		case "--registry":
			index = value
			i = next
		case "--userconfig", "--cache", "--prefix":
			l.remark("%s is kept out", name)
			i = next
		default:
			l.unsupported("uses the flag %s of npx", name)
			return
		}
	}
	if i < len(args) && args[i] == "--" {
		i++
	}
	rest := args[i:]
	p := catalog.Program{Runtime: catalog.NPX, Index: index}
	switch {
	case len(packages) > 0 && len(rest) > 0:
		p.Binary = rest[0]
		p.With = packages[1:]
	case len(rest) > 0:
		packages = rest[:1]
	default:
		l.unsupported("names no package")
		return
	}
	if len(p.With) == 0 {
		p.With = nil
	}
	var ok bool
	if p.Package, p.Version, ok = npmPackage(packages[0]); !ok {
		l.unsupported("runs %s, which is no package but something on the host", packages[0])
		return
	}
	if p.Package == "mcp-remote" && p.Binary == "" {
		l.bridged(rest[1:])
		return
	}
	l.program(p, rest[1:])
}

// npmPackage splits "@scope/name@version".
func npmPackage(spec string) (name, version string, ok bool) {
	switch {
	case spec == "" || strings.HasPrefix(spec, ".") || strings.HasPrefix(spec, "/") || strings.HasPrefix(spec, "~") || strings.HasPrefix(spec, "file:"):
		return "", "", false
	case strings.Contains(spec, "://") || strings.HasPrefix(spec, "github:"):
		return spec, "", true
	}
	if at := strings.LastIndex(spec, "@"); at > 0 {
		spec, version = spec[:at], spec[at+1:]
	}
	if version == "latest" {
		version = ""
	}
	return spec, version, true
}

// bridged reads the arguments of mcp-remote, which only leads to a server that
// is elsewhere: that server is the entry.
func (l *launcher) bridged(args []string) {
	remote := catalog.Remote{Transport: catalog.StreamableHTTP, Headers: make(map[string]string)}
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == "--header" && i+1 < len(args):
			i++
			name, value, ok := strings.Cut(args[i], ":")
			if !ok {
				l.unsupported("has a header without a colon, want name:value")
				return
			}
			remote.Headers[strings.TrimSpace(name)] = l.substitute(strings.TrimSpace(value))
		case args[i] == "--transport" && i+1 < len(args):
			i++
			if strings.HasPrefix(args[i], "sse") {
				remote.Transport = catalog.SSE
			}
		case strings.HasPrefix(args[i], "-"):
			name, _, _ := strings.Cut(args[i], "=")
			l.remark("%s of mcp-remote is kept out", name)
		case remote.URL == "":
			remote.URL = args[i]
		}
	}
	if remote.URL == "" {
		l.unsupported("names no URL for mcp-remote")
		return
	}
	l.remote(remote)
}

// substitute takes a variable that the client sets for the reference to it; a
// literal one is a secret, and stays a reference.
func (l *launcher) substitute(text string) string {
	for _, v := range l.command.Env {
		if refers(v.Value) {
			text = strings.ReplaceAll(text, "${"+v.Name+"}", v.Value)
		}
	}
	return text
}

// uvx reads "[--from package] tool[@version] args".
func (l *launcher) uvx(args []string) {
	p := catalog.Program{Runtime: catalog.UVX}
	i := 0
	for ; i < len(args) && strings.HasPrefix(args[i], "-") && args[i] != "--"; i++ {
		name, value, next := flag(args, i)
		switch name {
		case "-q", "--quiet", "-v", "--verbose", "--no-cache", "-n", "--refresh", "--isolated", "--native-tls", "--no-progress", "-U", "--upgrade", "--offline":
		case "--from", "--spec":
			p.Package = value
			i = next
		case "--with":
			p.With = append(p.With, strings.Split(value, ",")...)
			i = next
		case "--index-url", "-i", "--default-index":
			p.Index = value
			i = next
		case "--index", "--extra-index-url":
			l.remark("%s %s is kept out: set PIP_EXTRA_INDEX_URL in install.env of the configuration if the package comes from there", name, value)
			i = next
		case "-p", "--python", "--directory", "--env-file", "--prerelease", "--cache-dir", "--refresh-package":
			l.remark("%s %s is kept out", name, value)
			i = next
		default:
			l.unsupported("uses the flag %s of uvx", name)
			return
		}
	}
	if i < len(args) && args[i] == "--" {
		i++
	}
	if i >= len(args) {
		l.unsupported("names no package")
		return
	}
	tool := args[i]
	if p.Package == "" {
		p.Package = tool
	} else {
		p.Binary, _, _ = strings.Cut(tool, "@")
	}
	var ok bool
	if p.Package, p.Version, ok = pypiPackage(p.Package); !ok {
		l.unsupported("runs %s, which is no package but something on the host", tool)
		return
	}
	if p.Binary == p.Package {
		p.Binary = ""
	}
	l.program(p, args[i+1:])
}

var pypiSpec = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9._-]*(?:\[[^\]]*\])?)\s*(?:@\s*([^:/]+)|([=<>!~][^@]*))?$`)

// pypiPackage splits "name[extra]@version" and "name==version".
func pypiPackage(spec string) (name, version string, ok bool) {
	if strings.HasPrefix(spec, "git+https://") || strings.HasPrefix(spec, "https://") {
		return spec, "", true
	}
	m := pypiSpec.FindStringSubmatch(spec)
	if m == nil {
		return "", "", false
	}
	version = strings.TrimPrefix(m[2]+m[3], "==")
	if version == "latest" {
		version = ""
	}
	return m[1], version, true
}

// uv reads "[--directory folder] run file.py args" and "tool run package".
func (l *launcher) uv(args []string) {
	var folder string
	var with []string
	running := false
	for i := 0; i < len(args); i++ {
		name, value, next := flag(args, i)
		switch {
		case name == "--directory" || name == "--project":
			folder = l.text(value)
			i = next
		case name == "--with" && running:
			with = append(with, strings.Split(value, ",")...)
			i = next
		case (name == "--python" || name == "-p" || name == "--env-file" || name == "--extra") && running:
			l.remark("%s %s is kept out", name, value)
			i = next
		case strings.HasPrefix(name, "-"):
			if !slices.Contains([]string{"-q", "--quiet", "--no-project", "--frozen", "--isolated", "--no-sync", "--locked", "--active", "--all-extras", "--no-dev", "--script", "-s"}, name) {
				l.unsupported("uses the flag %s of uv", args[i])
				return
			}
		case !running && args[i] == "run":
			running = true
		case !running && args[i] == "tool" && i+1 < len(args) && args[i+1] == "run":
			l.uvx(args[i+2:])
			return
		case !running:
			l.unsupported("runs uv %s on the host", args[i])
			return
		default:
			l.uvRun(folder, with, args[i:])
			return
		}
	}
	l.unsupported("names nothing that uv runs")
}

func (l *launcher) uvRun(folder string, with, args []string) {
	switch {
	case programName(args[0]) == "python" && len(args) > 1:
		l.inFolder(folder)
		l.python(args[1:])
	case strings.HasSuffix(args[0], ".py"):
		l.inFolder(folder)
		l.file(catalog.UVX, args[0], args[1:])
	case folder == "" && len(with) > 0:
		p := catalog.Program{Runtime: catalog.UVX, Binary: args[0], With: with[1:]}
		if len(p.With) == 0 {
			p.With = nil
		}
		var ok bool
		if p.Package, p.Version, ok = pypiPackage(with[0]); !ok {
			l.unsupported("runs %s, which is no package but something on the host", with[0])
			return
		}
		l.program(p, args[1:])
	default:
		l.unsupported("runs %s of a project on the host; name the project's file or its package", args[0])
	}
}

func (l *launcher) inFolder(folder string) {
	if folder != "" {
		l.command.Dir = folder
	}
}

// python reads "-m module args" and "file.py args".
func (l *launcher) python(args []string) {
	for i, arg := range args {
		switch {
		case arg == "-m" && i+1 < len(args):
			module := args[i+1]
			name, _, _ := strings.Cut(module, ".")
			l.program(catalog.Program{Runtime: catalog.UVX, Package: name, Module: module}, args[i+2:])
			return
		case slices.Contains([]string{"-u", "-O", "-OO", "-B", "-I", "-s", "-E", "-q", "-3"}, arg):
		case strings.HasPrefix(arg, "-"):
			l.unsupported("uses the flag %s of python", arg)
			return
		default:
			l.file(catalog.UVX, arg, args[i+1:])
			return
		}
	}
	l.unsupported("names no file for python")
}

// node reads "file args".
func (l *launcher) node(args []string) {
	for i, arg := range args {
		switch {
		case slices.Contains([]string{"-e", "--eval", "-p", "--print", "-r", "--require", "--import", "--loader", "--env-file"}, arg),
			strings.HasPrefix(arg, "-i"):
			l.unsupported("uses the flag %s of node", arg)
			return
		case strings.HasPrefix(arg, "-"):
			l.remark("the flag %s of node is kept out", arg)
		default:
			l.file(catalog.NPX, arg, args[i+1:])
			return
		}
	}
	l.unsupported("names no file for node")
}

// file makes the entry of a script. Its project is mounted with it, for a
// script rarely stands alone: the nearest folder around it that says it is one,
// else the folder it lies in.
func (l *launcher) file(runtime, file string, args []string) {
	file = l.text(file)
	if rest, ok := strings.CutPrefix(file, "~/"); ok && l.around.Home != "" {
		file = l.around.Home + "/" + rest
	}
	switch {
	case strings.Contains(file, "{{"):
		l.unsupported("runs a file whose place is not known: %s", file)
		return
	case isAbsolute(file):
	case l.command.Dir == "":
		l.unsupported("runs the file %s, and it is not known where that is", file)
		return
	default:
		file = l.command.Dir + "/" + file
	}
	file = clean(file)
	folder := parent(file)
	marks := []string{"package.json"}
	if runtime == catalog.UVX {
		marks = []string{"pyproject.toml", "requirements.txt", "setup.py"}
	}
	for dir, depth := folder, 0; depth < 4 && dir != l.around.Home && parent(dir) != dir; dir, depth = parent(dir), depth+1 {
		if slices.ContainsFunc(marks, func(mark string) bool { return l.around.Exists(dir + "/" + mark) }) {
			folder = dir
			break
		}
	}
	l.program(catalog.Program{Runtime: runtime, File: file, Folder: folder}, args)
}

func isAbsolute(file string) bool {
	return strings.HasPrefix(file, "/") || hasDrive(file)
}

// clean takes dots out of a path of this machine; one of Windows stays.
func clean(file string) string {
	if strings.HasPrefix(file, "/") {
		return filepath.ToSlash(filepath.Clean(file))
	}
	return file
}

func parent(file string) string {
	at := strings.LastIndexAny(file, `/\`)
	if at <= 0 {
		return "/"
	}
	return file[:at]
}
