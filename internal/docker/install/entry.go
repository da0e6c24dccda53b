package install

import (
	"archive/tar"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/client"
)

// entry returns how a package that was installed is run, and its version.
func (p Package) entry(ctx context.Context, i *Packages, id string) (entrypoint []string, version string, err error) {
	if p.Ecosystem == NPM {
		root := path.Join(installRoot, "node_modules", p.Name)
		text, err := i.readFile(ctx, id, path.Join(root, "package.json"))
		if err != nil {
			return nil, "", err
		}
		script, version, err := npmCommand(text, p.Name, p.Command)
		return []string{"node", path.Join(root, script)}, version, err
	}
	names, err := i.list(ctx, id, installRoot)
	if err != nil {
		return nil, "", err
	}
	name, _, _ := strings.Cut(p.Name, "[") // without what it has extra
	version = cmp.Or(pythonVersion(names, name), p.Version)
	if p.Module != "" {
		return []string{"python3", "-m", p.Module}, version, nil
	}
	var commands []string
	for _, file := range names {
		if dir, command := path.Split(file); dir == "bin/" && command != "" {
			commands = append(commands, command)
		}
	}
	command, err := choose(commands, name, p.Command)
	// By way of the interpreter: the script's first line names the one of the
	// installation.
	return []string{"python3", path.Join(installRoot, "bin", command)}, version, err
}

// npmCommand reads a package.json: which script is the command, and the version.
func npmCommand(text []byte, name, command string) (script, version string, err error) {
	var manifest struct {
		Version string          `json:"version"`
		Bin     json.RawMessage `json:"bin"`
	}
	if err := json.Unmarshal(text, &manifest); err != nil {
		return "", "", fmt.Errorf("package.json of %s: %w", name, err)
	}
	base := name[strings.LastIndexByte(name, '/')+1:]
	var scripts map[string]string
	if json.Unmarshal(manifest.Bin, &script) == nil {
		scripts = map[string]string{base: script}
	} else if err := json.Unmarshal(manifest.Bin, &scripts); err != nil {
		return "", "", fmt.Errorf("package %s has no command", name)
	}
	var names []string
	for name := range scripts {
		names = append(names, name)
	}
	chosen, err := choose(names, base, command)
	return path.Clean("/" + scripts[chosen])[1:], manifest.Version, err
}

// choose picks the command that was asked for, or that of the package's name,
// or the only one.
func choose(commands []string, name, wanted string) (string, error) {
	slices.Sort(commands)
	for _, want := range []string{wanted, name} {
		if want != "" && slices.Contains(commands, want) {
			return want, nil
		}
		if want == wanted && want != "" {
			return "", fmt.Errorf("package %s has no command %q, but %s", name, want, strings.Join(commands, ", "))
		}
	}
	if len(commands) == 1 {
		return commands[0], nil
	}
	if len(commands) == 0 {
		return "", fmt.Errorf("package %s has no command", name)
	}
	return "", fmt.Errorf("package %s has several commands and none of its name: %s", name, strings.Join(commands, ", "))
}

// pythonVersion finds the version of a distribution among the names in a
// folder of packages: NAME-VERSION.dist-info, with the name's separators as
// underscores (Python packaging: recording installed projects).
func pythonVersion(names []string, name string) string {
	normal := strings.NewReplacer("-", "_", ".", "_").Replace(strings.ToLower(name))
	for _, entry := range names {
		info, ok := strings.CutSuffix(strings.TrimSuffix(entry, "/"), ".dist-info")
		at := strings.LastIndexByte(info, '-')
		if ok && at > 0 && strings.NewReplacer("-", "_", ".", "_").Replace(strings.ToLower(info[:at])) == normal {
			return info[at+1:]
		}
	}
	return ""
}

// readFile returns a file of a container.
func (i *Packages) readFile(ctx context.Context, id, file string) ([]byte, error) {
	var content []byte
	err := i.walk(ctx, id, file, func(header *tar.Header, in io.Reader) (err error) {
		if header.Typeflag == tar.TypeReg && content == nil {
			content, err = io.ReadAll(io.LimitReader(in, maxManifest))
		}
		return err
	})
	if err == nil && content == nil {
		err = fmt.Errorf("%s is not a file", file)
	}
	return content, err
}

// list returns the paths in a folder of a container, relative to it; those of
// folders end with a slash.
func (i *Packages) list(ctx context.Context, id, folder string) ([]string, error) {
	var names []string
	err := i.walk(ctx, id, folder, func(header *tar.Header, _ io.Reader) error {
		if _, name, ok := strings.Cut(header.Name, "/"); ok && name != "" && strings.Count(strings.TrimSuffix(name, "/"), "/") <= 1 {
			names = append(names, name)
		}
		return nil
	})
	return names, err
}

func (i *Packages) walk(ctx context.Context, id, from string, visit func(*tar.Header, io.Reader) error) error {
	copied, err := i.books.API.CopyFromContainer(ctx, id, client.CopyFromContainerOptions{SourcePath: from})
	if cerrdefs.IsNotFound(err) {
		return fmt.Errorf("the installation has left no %s", from)
	}
	if err != nil {
		return err
	}
	defer func() { _ = copied.Content.Close() }()
	archive := tar.NewReader(copied.Content)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := visit(header, archive); err != nil {
			return err
		}
	}
}
