package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/client"
	"github.com/dockgate/dockgate/internal/daemon"
	"github.com/dockgate/dockgate/internal/outside"
)

// connectFlags are those of connect.
type connectFlags struct {
	out     output
	docker  bool
	share   bool
	print   bool
	adopt   bool
	file    string
	image   string
	volume  string
	project string
	folders []string
}

func newConnect(f *flags) *cobra.Command {
	var own connectFlags
	cmd := &cobra.Command{
		Use:   "connect [CLIENT]",
		Short: "Put the gateway into the configuration of an MCP client",
		Long: `Put an entry for the gateway into the configuration of an MCP client, so that
the client starts it. Comments, order and formatting of the file stay, and the
file as it was is kept beside it. Where the entry is already, nothing changes;
what you have added to it, such as variables or a time limit, stays when it
changes. A file that cannot be read is left as it is. Without a client it lists
those that there are.

The entry starts this program with the --state, --config, --catalog, --host and
--context that are given here or in the environment. With --docker it starts the
gateway's image instead, and tells it of the host: your home folder (read only,
so that servers can get folders of it), your user, and the project, which is the
repository that you are in unless --project names another.

With --share the client uses one gateway, and so one container of each server,
together with the other clients that do; see "dockgate serve --help".

With --import the client's other servers move behind the gateway, if they can be
run there: into your own catalog, active for you, and out of the client's file.
Values that look like secrets stay in that file: those of variables as variables
of the gateway; a server with one in an argument or a URL stays there whole.
"dockgate disconnect" puts the servers back.` + exits,
		Example: `  dockgate connect
  dockgate connect claude-desktop --import
  dockgate connect claude-code --share
  dockgate connect vscode --file .vscode/mcp.json
  dockgate connect cursor --docker --folder /srv/data --print`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: once(complete(clientNames)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.checkConnect(cmd, own); err != nil {
				return err
			}
			switch {
			case len(args) == 0 && own.print:
				return f.printEntry(cmd, own, "")
			case len(args) == 0:
				return f.listClients(cmd, own.out)
			case own.print:
				return f.printEntry(cmd, own, args[0])
			}
			return f.connect(cmd, own, args[0])
		},
	}
	set := cmd.Flags()
	set.BoolVar(&own.docker, "docker", false, "start the gateway's image instead of this program")
	set.BoolVar(&own.share, "share", false, "share one gateway with the other clients that do")
	set.BoolVar(&own.print, "print", false, "print the entry and change nothing")
	set.BoolVar(&own.adopt, "import", false, "move the client's other servers behind the gateway")
	set.StringVar(&own.file, "file", "", "configuration `file` instead of the client's usual one, such as .vscode/mcp.json")
	set.StringVar(&own.image, "image", outside.Image, "`image` of the gateway, with --docker")
	set.StringVar(&own.volume, "volume", outside.Volume, "`volume` with the gateway's state, with --docker")
	set.StringVar(&own.project, "project", "", "`folder` that is worked in, with --docker (default the repository you are in)")
	set.StringArrayVar(&own.folders, "folder", nil, "other `folder` that servers can get, with --docker; repeatable")
	own.out.flag(cmd)
	return cmd
}

// checkConnect refuses flags of the one form of the gateway with the other.
func (f *flags) checkConnect(cmd *cobra.Command, own connectFlags) error {
	if own.docker && (f.state != "" || f.config != "" || len(f.catalogs) > 0) {
		return &usageError{cmd: cmd, err: errors.New("--state, --config and --catalog are not for --docker: the image has its state in a volume, and reads ~/.config/dockgate")}
	}
	for _, name := range []string{"image", "volume", "project", "folder"} {
		if !own.docker && cmd.Flags().Changed(name) {
			return &usageError{cmd: cmd, err: fmt.Errorf("--%s is for --docker", name)}
		}
	}
	return nil
}

func newDisconnect(f *flags) *cobra.Command {
	var out output
	var file string
	cmd := &cobra.Command{
		Use:   "disconnect CLIENT",
		Short: "Take the gateway out of the configuration of an MCP client",
		Long: `Take the entry for the gateway out of the configuration of an MCP client. If
nothing else in the file has changed since, it is what it was before, to the
byte, and the backup goes; else the file as it was is kept beside it.` + exits,
		Example: `  dockgate disconnect claude-desktop
  dockgate disconnect vscode --file .vscode/mcp.json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: once(complete(clientNames)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, path, err := f.clientFile(args[0], file)
			if err != nil {
				return err
			}
			change, err := c.Disconnect(path)
			if err != nil {
				return err
			}
			return out.print(cmd, change, func() error { tellDisconnected(cmd, c, change); return nil })
		},
	}
	cmd.Flags().StringVar(&file, "file", "", "configuration `file` instead of the client's usual one")
	out.flag(cmd)
	return cmd
}

// clientFile returns a client and its configuration; file replaces the usual one.
func (f *flags) clientFile(name, file string) (client.Client, string, error) {
	c, err := findClient(name)
	if err != nil {
		return client.Client{}, "", err
	}
	if _, inside := outside.Read(os.LookupEnv); inside && file == "" {
		return client.Client{}, "", &insideError{client: c.Name}
	}
	if file != "" {
		file, err = filepath.Abs(file)
		return c, file, err
	}
	options, err := f.around()
	if err != nil {
		return client.Client{}, "", err
	}
	return c, c.File(machineOf(options)), nil
}

// machineOf is this machine, as clients know it.
func machineOf(options daemon.Options) client.Machine {
	return client.Machine{
		OS: runtime.GOOS, Home: options.Home, Env: options.Env,
		Exists: func(path string) bool { _, err := os.Stat(path); return err == nil },
	}
}

// findClient returns a client, or an error with the names that are most like it.
func findClient(name string) (client.Client, error) {
	c, err := client.Find(name)
	var unknown *client.UnknownError
	if errors.As(err, &unknown) {
		return c, fmt.Errorf("%w; nearest: %s", err, strings.Join(catalog.Nearest(name, unknown.Known), ", "))
	}
	return c, err
}

// An insideError is a client's configuration asked of a gateway in a container.
type insideError struct{ client string } // empty is any

func (e *insideError) Error() string {
	return "the configuration of " + first(e.client, "MCP clients") + " is on the host, and this is a container"
}

// Hint says how the entry gets there.
func (e *insideError) Hint() string {
	return "put in by hand what this prints: " + strings.Join(strings.Fields("dockgate connect "+e.client+" --print"), " ")
}

func (f *flags) connect(cmd *cobra.Command, own connectFlags, name string) error {
	c, path, err := f.clientFile(name, own.file)
	if err != nil {
		return err
	}
	adopted, err := f.adopt(cmd, own, c, path)
	if err != nil {
		return err
	}
	command, err := f.command(cmd, own, adopted)
	if err != nil {
		return err
	}
	change, err := c.Connect(path, command, adopted.Moved...)
	if err != nil {
		return err
	}
	return own.out.print(cmd, struct {
		client.Change
		adoption
		Entry client.Command `json:"entry"`
	}{change, adopted, withoutValues(command)}, func() error {
		tellConnected(cmd, c, change)
		tellAdopted(cmd, adopted)
		return nil
	})
}

// withoutValues is a command that can be shown: its variables may be secrets.
func withoutValues(command client.Command) client.Command {
	command.Env = maps.Clone(command.Env)
	for name := range command.Env {
		command.Env[name] = "…"
	}
	return command
}

func tellConnected(cmd *cobra.Command, c client.Client, change client.Change) {
	switch change.Outcome {
	case client.Unchanged:
		tell(cmd, "%s is connected already, in %s", c.Title, change.Path)
		return
	case client.Created:
		tell(cmd, "%s is connected: %s was made", c.Title, change.Path)
	default:
		tell(cmd, "%s is connected: %s was changed", c.Title, change.Path)
	}
	if change.Backup != "" {
		tell(cmd, "  as it was: %s", change.Backup)
	}
	tell(cmd, "next: %s", change.Next)
}

func tellDisconnected(cmd *cobra.Command, c client.Client, change client.Change) {
	switch change.Outcome {
	case client.Unchanged:
		tell(cmd, "%s is not connected in %s", c.Title, change.Path)
		return
	case client.Restored:
		tell(cmd, "%s is disconnected: %s is what it was before", c.Title, change.Path)
	case client.Removed:
		tell(cmd, "%s is disconnected: %s had nothing else and was removed", c.Title, change.Path)
	default:
		tell(cmd, "%s is disconnected: %s was changed", c.Title, change.Path)
		tell(cmd, "  as it was: %s", change.Backup)
	}
	if len(change.PutBack) > 0 {
		tell(cmd, "  put back: %s; your own catalog has them still", strings.Join(change.PutBack, ", "))
	}
	tell(cmd, "next: restart %s, if it runs", c.Title)
}

// printEntry prints what a client's configuration needs; the commonest form
// for a client without a name.
func (f *flags) printEntry(cmd *cobra.Command, own connectFlags, name string) error {
	c, err := findClient(first(name, "claude-desktop"))
	if err != nil {
		return err
	}
	command, err := f.command(cmd, own, adoption{})
	if err != nil {
		return err
	}
	text, err := c.Print(command)
	if err != nil {
		return err
	}
	return own.out.print(cmd, command, func() error {
		_, err := fmt.Fprint(cmd.OutOrStdout(), text)
		return err
	})
}

// command returns what a client is to start.
func (f *flags) command(cmd *cobra.Command, own connectFlags, adopted adoption) (client.Command, error) {
	if here, inside := outside.Read(os.LookupEnv); inside {
		return client.Command{Program: "docker", Args: slices.Concat(here.Run(), own.serve())}, nil
	}
	if own.docker {
		return f.dockerCommand(cmd, own, adopted)
	}
	program, err := ownPath()
	if err != nil {
		return client.Command{}, err
	}
	args := own.serve()
	host, dockerContext := f.target()
	// A client is not started from this shell, and has none of its variables.
	for _, flag := range []struct {
		name, value string
		isPath      bool
	}{
		{"--state", first(f.state, os.Getenv("DOCKGATE_STATE")), true},
		{"--config", f.config, true},
		{"--host", host, false},
		{"--context", dockerContext, false},
	} {
		if flag.value == "" {
			continue
		}
		if flag.isPath {
			if flag.value, err = filepath.Abs(flag.value); err != nil {
				return client.Command{}, err
			}
		}
		args = append(args, flag.name, flag.value)
	}
	for _, path := range f.catalogs {
		if path, err = filepath.Abs(path); err != nil {
			return client.Command{}, err
		}
		args = append(args, "--catalog", path)
	}
	// The client would start a gateway that ends at once, and hide why.
	for _, path := range append([]string{f.config}, f.catalogs...) {
		if _, err := os.Stat(path); path != "" && errors.Is(err, os.ErrNotExist) {
			return client.Command{}, fmt.Errorf("%s: %w", path, os.ErrNotExist)
		}
	}
	return client.Command{Program: program, Args: args, Env: adopted.env}, nil
}

// serve is the command of dockgate that a client is to start.
func (c connectFlags) serve() []string {
	if c.share {
		return []string{"serve", "--share"}
	}
	return []string{"serve"}
}

// ownPath is where this program is: as the shell finds it, if it does, because
// package managers keep that path when they install another version.
func ownPath() (string, error) {
	program, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("path of this program: %w", err)
	}
	found, err := exec.LookPath(filepath.Base(program))
	if err != nil {
		return program, nil //nolint:nilerr // it is not on the PATH, and has a path all the same
	}
	if found, err = filepath.Abs(found); err != nil {
		return program, nil //nolint:nilerr // as above
	}
	here, err := os.Stat(program)
	if err != nil {
		return "", fmt.Errorf("path of this program: %w", err)
	}
	if there, err := os.Stat(found); err == nil && os.SameFile(here, there) {
		return found, nil
	}
	return program, nil
}

// dockerCommand returns the command of the image form, with what it is told of
// this machine.
func (f *flags) dockerCommand(cmd *cobra.Command, own connectFlags, adopted adoption) (client.Command, error) {
	options, err := f.around()
	if err != nil {
		return client.Command{}, err
	}
	address, err := daemon.EngineAddress(cmd.Context(), options)
	if err != nil {
		return client.Command{}, err
	}
	c := outside.Container{Image: own.image, Volume: own.volume}
	var global []string
	host, dockerContext := f.target()
	for _, flag := range []struct{ name, value string }{
		{"--host", host},
		{"--context", dockerContext},
	} {
		if flag.value != "" {
			global = append(global, flag.name, flag.value)
		}
	}
	socket, local := strings.CutPrefix(address, "unix://")
	switch {
	case !local || runtime.GOOS == "windows":
		tell(cmd, "the engine at %s does not see this machine's folders under their paths: servers that ask for some are refused", address)
	default:
		if c.Host, err = hostOf(options.Home, options.Dir, own); err != nil {
			return client.Command{}, err
		}
		c.Socket = socketFor(socket, options.Home)
	}
	c.Pass = slices.Sorted(maps.Keys(adopted.env))
	serve := own.serve()
	for _, name := range adopted.active {
		serve = append(serve, "--server", name)
	}
	return client.Command{Program: "docker", Args: slices.Concat(global, c.Run(), serve), Env: adopted.env}, nil
}

// socketFor returns the path of the engine's socket as the engine's own
// containers can mount it. An engine in a virtual machine has it in the usual
// place, wherever it is for this machine.
func socketFor(socket, home string) string {
	if runtime.GOOS != "linux" || strings.HasPrefix(socket, filepath.Join(home, ".docker")+"/") {
		return outside.Socket
	}
	return socket
}

// hostOf is what a gateway in a container is told of this machine.
func hostOf(home, dir string, own connectFlags) (outside.Host, error) {
	var host outside.Host
	var err error
	if host.Home, err = outside.Absolute(home); err != nil {
		return host, err
	}
	if me, err := user.Current(); err == nil {
		host.User = me.Uid + ":" + me.Gid
	}
	project := first(own.project, repository(dir, home))
	if project != "" {
		if host.Project, err = outside.Absolute(project); err != nil {
			return host, err
		}
	}
	for _, name := range own.folders {
		folder, err := outside.Absolute(name)
		if err != nil {
			return host, err
		}
		host.Folders = append(host.Folders, folder)
	}
	// The engine would make a folder that is missing, as root.
	for _, name := range append([]string{host.Home, host.Project}, host.Folders...) {
		if info, err := os.Stat(name); name != "" && (err != nil || !info.IsDir()) {
			return host, fmt.Errorf("%s is no folder", name)
		}
	}
	return host, nil
}

// repository returns the repository that a folder is in, empty if it is in none.
func repository(dir, home string) string {
	for dir != home && dir != filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		dir = filepath.Dir(dir)
	}
	return ""
}
