package sandbox

import (
	"path"
	"path/filepath"
	"strings"

	"github.com/dockgate/dockgate/internal/catalog"
)

// appFolder is where the folder of a program's file is mounted.
const appFolder = "/app"

// program makes a Spec run a program. The image of a package has it as its
// entrypoint; a file is mounted with its folder, read-only, and run by the
// interpreter of the runtime.
func (c *compiler) program(spec *Spec) {
	p := c.entry.Program
	spec.Command = nil
	if p.File == "" {
		return
	}
	mount := Mount{Source: p.Folder, Target: appFolder, ReadOnly: true}
	inside, err := filepath.Rel(p.Folder, p.File)
	if err != nil || strings.HasPrefix(inside, "..") {
		c.refuse("program.file", "%s does not lie in %s", p.File, p.Folder)
		return
	}
	if c.admit("program.folder", &mount) {
		spec.Mounts = append(spec.Mounts, mount)
	}
	interpreter := "node"
	if p.Runtime == catalog.UVX {
		interpreter = "python3"
	}
	spec.Entrypoint = []string{interpreter, path.Join(appFolder, filepath.ToSlash(inside))}
	spec.WorkingDir, spec.User = appFolder, nobody
}

// nobody runs files: no image has a say in it, and the folder is read only.
const nobody = "65532:65532"

// exec makes the Spec of a process in a container that the user runs. What
// bounds it is the container's own; none of it is ours.
func (c *compiler) exec(image Image) (Spec, error) {
	spec := Spec{
		Server: c.entry.Name, Exec: c.entry.Exec.Container, Image: image,
		Entrypoint: c.expandAll("entrypoint", c.entry.Entrypoint), Command: c.expandAll("command", c.entry.Command),
		WorkingDir: c.entry.WorkingDir, Network: catalog.NetworkFull, Secrets: requiredSecrets(c.entry.Secrets), Stop: c.entry.Timeouts.Stop,
		User: strings.Join(c.expand("user", c.entry.User), ""),
	}
	own := writableHome()
	for _, v := range c.variables() {
		if !contains(own, v) {
			spec.Env = append(spec.Env, v)
		}
	}
	if len(spec.Entrypoint)+len(spec.Command) == 0 {
		c.refuse("command", "the entry has no command")
	}
	if len(c.problems) > 0 {
		return Spec{}, refusal(c.entry, c.problems)
	}
	return spec, nil
}
