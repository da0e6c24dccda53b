package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/daemon"
	"github.com/dockgate/dockgate/internal/docker/reach"
	"github.com/dockgate/dockgate/internal/login"
	"github.com/dockgate/dockgate/internal/outside"
	"github.com/dockgate/dockgate/internal/policy"
	"github.com/dockgate/dockgate/internal/setup"
)

// flags are those of every command.
type flags struct {
	state    string
	config   string
	catalogs []string
	host     string
	context  string
	verbose  bool
	// client is around the client of a shared gateway; nil is this process.
	client *surroundings
}

// surroundings are the working directory and the environment of a process.
type surroundings struct {
	dir string
	env map[string]string
}

// lookup looks a variable up.
func (f *flags) lookup(name string) (string, bool) {
	if f.client == nil {
		return os.LookupEnv(name)
	}
	value, ok := f.client.env[name]
	return value, ok
}

func (f *flags) getenv(name string) string {
	value, _ := f.lookup(name)
	return value
}

// folders returns the user's home folder and the working directory.
func (f *flags) folders() (home, dir string, err error) {
	if f.client != nil {
		return first(f.client.env["HOME"], f.client.env["USERPROFILE"]), f.client.dir, nil
	}
	if home, err = os.UserHomeDir(); err != nil {
		return "", "", fmt.Errorf("home folder: %w", err)
	}
	if dir, err = os.Getwd(); err != nil {
		return "", "", fmt.Errorf("working directory: %w", err)
	}
	return home, dir, nil
}

func (f *flags) register(root *cobra.Command) {
	set := root.PersistentFlags()
	set.StringVar(&f.state, "state", "", "state `folder` (default $DOCKGATE_STATE, else $XDG_STATE_HOME/dockgate)")
	set.StringVar(&f.config, "config", "", "configuration `file` (default $XDG_CONFIG_HOME/dockgate/config.yaml, if it is there)")
	set.StringArrayVar(&f.catalogs, "catalog", nil, "catalog `file` or folder on top of the built-in one; repeatable, later wins")
	set.StringVar(&f.host, "host", "", "Docker engine to use (default that of --context, else $DOCKER_HOST, else the current Docker context)")
	set.StringVar(&f.context, "context", "", "Docker context to use (default $DOCKER_CONTEXT)")
	set.BoolVarP(&f.verbose, "verbose", "v", false, "say more on standard error")
}

// options joins flags, environment and configuration file, in this order.
func (f *flags) options() (daemon.Options, error) {
	options, err := f.around()
	if err != nil {
		return daemon.Options{}, err
	}
	options.Config, err = f.loadConfig(options.Home)
	options.ConfigFile, _ = f.configFile(options.Home)
	options.Load = func() (policy.Config, error) { return f.loadConfig(options.Home) }
	return options, err
}

// around are the options without a configuration.
func (f *flags) around() (daemon.Options, error) {
	home, dir, err := f.folders()
	if err != nil {
		return daemon.Options{}, err
	}
	// In a container of its own the gateway has only what it is told of.
	here, inside := outside.Read(f.lookup)
	if inside {
		home, dir = first(here.Host.Home, home), first(here.Host.Project, dir)
	}
	state := first(f.state, f.getenv("DOCKGATE_STATE"), filepath.Join(first(f.getenv("XDG_STATE_HOME"), filepath.Join(home, ".local", "state")), "dockgate"))
	options := daemon.Options{
		Inputs: setup.Inputs{
			Home:       home,
			Dir:        dir,
			OwnCatalog: filepath.Join(f.configDir(home), "servers.yaml"),
			Answers:    filepath.Join(state, "registry"),
			Env:        f.lookup,
		},
		State:    state,
		Engine:   f.engine(),
		Version:  version,
		Logger:   f.logger(slog.LevelInfo),
		Keychain: keychain(),
	}
	if inside {
		options.Outside, options.Phrase = &here.Host, here.Phrase
	}
	return options, nil
}

// phrase returns a text for a person with the commands in it as they are typed
// where this program runs.
func phrase(text string) string {
	if here, inside := outside.Read(os.LookupEnv); inside {
		return here.Phrase(text)
	}
	return text
}

// keychain is the system's, unless the user does not want it.
func keychain() login.Keychain {
	if os.Getenv("DOCKGATE_KEYCHAIN") == "off" {
		return nil
	}
	return login.System{}
}

// logger logs what has at least the given level, or everything if the user
// wants to hear more.
func (f *flags) logger(level slog.Level) *slog.Logger {
	if f.verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
}

// configFile returns the configuration file, and whether the user named it.
func (f *flags) configFile(home string) (path string, named bool) {
	if f.config != "" {
		return f.config, true
	}
	return filepath.Join(f.configDir(home), "config.yaml"), false
}

// configDir is the folder of what the user configures.
func (f *flags) configDir(home string) string {
	return filepath.Join(first(f.getenv("XDG_CONFIG_HOME"), filepath.Join(home, ".config")), "dockgate")
}

func (f *flags) loadConfig(home string) (policy.Config, error) {
	path, named := f.configFile(home)
	config, err := policy.LoadConfig(path)
	if !named && errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	config.Catalogs = append(config.Catalogs, f.catalogs...)
	return config, err
}

func (f *flags) engine() reach.Options {
	tls := reach.TLSByCertificates
	if f.getenv("DOCKER_TLS_VERIFY") != "" {
		tls = reach.TLSVerify
	}
	host, dockerContext := f.target()
	return reach.Options{
		TLS:       tls,
		Host:      host,
		Context:   dockerContext,
		ConfigDir: f.getenv("DOCKER_CONFIG"),
		CertPath:  f.getenv("DOCKER_CERT_PATH"),
	}
}

// target returns the engine's address, or else its Docker context; both are
// empty for the current one. A flag is stronger than the environment, whichever
// of the two it names, and as for docker the default context is none.
func (f *flags) target() (host, dockerContext string) {
	switch {
	case f.host != "":
		return f.host, ""
	case f.context != "" && f.context != "default":
		return "", f.context
	}
	if host := f.getenv("DOCKER_HOST"); host != "" {
		return host, ""
	}
	return "", first(f.context, f.getenv("DOCKER_CONTEXT"))
}

func first(values ...string) string {
	for _, value := range values {
		if value != "" {
			return value
		}
	}
	return ""
}

// open makes the parts of a gateway for a command that serves nobody. Whoever
// runs a command decides by it, so what nobody approved is always asked for.
func (f *flags) open(ctx context.Context) (*daemon.Daemon, error) {
	options, err := f.options()
	if err != nil {
		return nil, err
	}
	options.Config.Approval.Mode = approval.ModeAsk
	if !f.verbose {
		options.Logger = slog.New(talk{out: os.Stderr})
	}
	return daemon.Open(ctx, options)
}

// use opens the parts of a gateway, and closes them when do is done.
func (f *flags) use(ctx context.Context, do func(*daemon.Daemon) error) error {
	d, err := f.open(ctx)
	if err != nil {
		return err
	}
	return errors.Join(do(d), d.Close())
}

// settle fits the runtime to what a gateway does: it mostly waits, allocates
// much and keeps little. It trades memory, which it hardly uses, for time,
// within a limit. And it leaves half of the processors to the engine and the
// servers: a call goes through several goroutines one after the other, and
// waking another processor for each of them costs more than it brings.
func settle() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(64 << 20)
	}
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(max(1, runtime.GOMAXPROCS(0)/2))
	}
}

// A usageError is a command line that cannot be understood.
type usageError struct {
	cmd  *cobra.Command
	err  error
	hint string
}

func (e *usageError) Error() string { return e.err.Error() }

func (e *usageError) Unwrap() error { return e.err }

// Hint shows how the command is used.
func (e *usageError) Hint() string {
	return first(e.hint, "see: "+e.cmd.CommandPath()+" --help")
}
