package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dockgate/dockgate/internal/catalog"
)

var errNotAbsolute = errors.New("is not an absolute path")

// mounts expands and checks what is asked to be mounted beside others. A list
// in a source makes one mount of each element. The fields begin with prefix.
func (c *compiler) mounts(prefix string, wanted []catalog.Mount, others []Mount) []Mount {
	mounts := slices.Clone(others)
	for i, m := range wanted {
		field := fmt.Sprintf("%smounts[%d]", prefix, i)
		targets := c.expand(field+".target", m.Target)
		if m.Volume != "" {
			c.volumes(field, m, targets, &mounts)
			continue
		}
		sources := c.expand(field+".source", m.Source)
		if len(sources) == 0 { // an optional setting that is not set
			continue
		}
		if len(sources) != len(targets) {
			c.refuse(field, "%d sources for %d targets", len(sources), len(targets))
			continue
		}
		for j, source := range sources {
			mount := Mount{Source: source, Target: path.Clean(targets[j]), ReadOnly: m.ReadOnly}
			if c.admit(field, &mount) && c.free(field, mount, mounts) {
				mounts = append(mounts, mount)
			}
		}
	}
	return mounts[len(others):]
}

// volumes adds a volume of the engine. No host path is behind it, so there is
// nothing to admit but its target; the grant names it.
func (c *compiler) volumes(field string, m catalog.Mount, targets []string, mounts *[]Mount) {
	for _, target := range targets {
		mount := Mount{Volume: m.Volume, Target: path.Clean(target), ReadOnly: m.ReadOnly}
		if c.free(field, mount, *mounts) {
			*mounts = append(*mounts, mount)
		}
	}
}

// admit replaces the source by its real path, or refuses it.
func (c *compiler) admit(field string, m *Mount) bool {
	if c.host.RemoteEngine {
		c.refuse(field+".source", "the engine runs on another machine and does not see %s", m.Source)
		return false
	}
	source, err := absolute(m.Source, c.host.Home)
	if err != nil {
		c.refuse(field+".source", "%q %v", m.Source, err)
		return false
	}
	// The path as written is checked too: what it links to may change later.
	if reason := c.forbidden(source); reason != "" {
		c.refuse(field+".source", "%s is never mounted: %s", source, reason)
		return false
	}
	found, err := c.host.Stat(source)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		c.refuse(field+".source", "%s does not exist", source)
		return false
	case err != nil:
		c.refuse(field+".source", "%v", err)
		return false
	case found.Socket:
		c.refuse(field+".source", "%s is never mounted: it is a socket or a device", source)
		return false
	}
	if reason := c.forbidden(found.Real); reason != "" {
		c.refuse(field+".source", "%s is never mounted: it leads to %s, %s", source, found.Real, reason)
		return false
	}
	m.Source = found.Real
	if !m.ReadOnly && c.owner == "" {
		c.owner = found.Owner
	}
	return true
}

// ownFiles makes the person the user of a server that gets files of credentials:
// nobody else may read those as a rule, root without capabilities neither.
func (c *compiler) ownFiles() {
	if c.owner != "" || c.host.RemoteEngine || !slices.ContainsFunc(c.entry.Secrets, func(s catalog.Secret) bool { return s.File }) {
		return
	}
	if home, err := c.host.Stat(c.host.Home); err == nil {
		c.owner = home.Owner
	}
}

// SecretFile returns the real path of the file that a secret's value names.
// Credentials lie in folders that are never mounted, so these are not refused
// here; sockets and what is no file are, and every file on a remote engine. The
// error is a [*CompileError], and does not quote the value.
func (h Host) SecretFile(server string, s Secret, value string) (string, error) {
	refuse := func(text string) (string, error) {
		return "", &CompileError{Server: server, Problems: []Problem{{Field: "secrets." + s.Env, Text: text}}}
	}
	if h.RemoteEngine {
		return refuse("the engine runs on another machine and does not see this one's files")
	}
	path, err := absolute(value, h.Home)
	if err != nil {
		return refuse("its value, which should be the path of a file, " + err.Error())
	}
	found, err := h.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return refuse("the file that its value names does not exist")
	case err != nil:
		return refuse("the file that its value names cannot be looked at")
	case found.Socket || found.Folder:
		return refuse("what its value names is no file")
	}
	return found.Real, nil
}

// free refuses targets that would hide what a container needs, or each other.
func (c *compiler) free(field string, m Mount, others []Mount) bool {
	taken := slices.ContainsFunc(others, func(o Mount) bool { return o.Target == m.Target })
	switch {
	case !path.IsAbs(m.Target):
		c.refuse(field+".target", "%q %v", m.Target, errNotAbsolute)
	case m.Target == "/" || within(m.Target, "/proc") || within(m.Target, "/sys") || within(m.Target, "/dev"):
		c.refuse(field+".target", "%s belongs to the container itself", m.Target)
	case taken:
		c.refuse(field+".target", "%s is mounted twice", m.Target)
	default:
		return true
	}
	return false
}

// forbidden says why a host path is never mounted; empty if it may be.
func (c *compiler) forbidden(source string) string {
	if source == "/" || source == filepath.VolumeName(source)+string(filepath.Separator) {
		return "the whole file system"
	}
	for _, system := range systemFolders() {
		if within(source, system) {
			return "a system folder (" + system + ")"
		}
		if within(system, source) {
			return "it holds the system folder " + system
		}
	}
	if base := path.Base(filepath.ToSlash(source)); base == "docker.sock" || base == "podman.sock" {
		return "the engine's socket"
	}
	if c.host.Home != "" && within(c.host.Home, source) {
		return "it holds a whole home folder"
	}
	home, rest := homeOf(source, c.host.Home)
	if home != "" && rest == "" {
		return "a whole home folder"
	}
	for _, name := range credentialFolders() {
		if home == "" {
			break
		}
		if within(rest, name) {
			return "credentials (" + name + ")"
		}
		if within(name, rest) {
			return "it holds the credentials in " + name
		}
	}
	return ""
}

func systemFolders() []string {
	return []string{
		"/etc", "/var/run", "/run", "/proc", "/sys", "/dev", "/boot", "/var/lib/docker", "/var/lib/containerd",
		"/private/etc", "/private/var/run",
	}
}

// credentialFolders lists what in a home folder opens other doors: keys,
// tokens, and the profiles of browsers with their cookies.
func credentialFolders() []string {
	return []string{
		".ssh", ".aws", ".azure", ".docker", ".gnupg", ".kube", ".password-store", ".netrc", ".npmrc", ".pypirc",
		".git-credentials", ".config/gcloud", ".config/gh", ".config/op", ".config/dockgate", ".local/state/dockgate",
		".local/share/keyrings", ".mozilla", ".config/google-chrome", ".config/chromium", ".config/BraveSoftware",
		".config/microsoft-edge", "Library/Keychains", "Library/Application Support/Google/Chrome",
		"Library/Application Support/Firefox", "Library/Safari", "AppData/Roaming/Mozilla", "AppData/Local/Google/Chrome",
	}
}

// homeOf splits a path into the home folder it lies in, of whichever user, and the rest.
func homeOf(source, home string) (string, string) {
	source = filepath.ToSlash(source)
	homes := []string{filepath.ToSlash(home), "/root"}
	for _, parent := range []string{"/home", "/Users"} {
		if rest, ok := strings.CutPrefix(source, parent+"/"); ok {
			user, _, _ := strings.Cut(rest, "/")
			homes = append(homes, parent+"/"+user)
		}
	}
	for _, h := range homes {
		if h != "" && within(source, h) {
			return h, strings.TrimPrefix(strings.TrimPrefix(source, h), "/")
		}
	}
	return "", ""
}

func absolute(source, home string) (string, error) {
	if rest, ok := strings.CutPrefix(source, "~/"); ok && home != "" {
		source = filepath.Join(home, rest)
	}
	if source == "~" {
		source = home
	}
	if !filepath.IsAbs(source) {
		return "", errNotAbsolute
	}
	return filepath.Clean(source), nil
}

// within reports whether child is parent or lies below it.
func within(child, parent string) bool {
	child, parent = filepath.ToSlash(child), filepath.ToSlash(parent)
	return child == parent || strings.HasPrefix(child, strings.TrimSuffix(parent, "/")+"/")
}
