package reach

import (
	"context"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/moby/moby/api/types/system"
	"github.com/moby/moby/client"
	"github.com/moby/moby/client/pkg/versions"
)

// oldestAPI is the oldest API that containers are known to be run well with.
const oldestAPI = "1.41"

// An Info is what "dockgate doctor" says of an engine.
type Info struct {
	Host  string
	Local bool
	// API is the version that is spoken, EngineAPI the newest that the engine knows.
	API, EngineAPI string
	// Name is what the engine calls itself, such as "Docker Desktop 4.50.0".
	Name    string
	Version string
	// Platform is "os/arch" of the engine.
	Platform string
	System   string
	Kernel   string
	CPUs     int
	// Memory is in bytes.
	Memory        int64
	CgroupVersion string
	CgroupDriver  string
	Storage       string
	Root          string
	// Security has the engine's security options, such as "seccomp" and "rootless".
	Security []string
	Rootless bool
	Podman   bool
	// Containers, Images are how many the engine has.
	Containers, Images int
	// Warnings are the engine's own.
	Warnings []string
	// Unenforced says what of a sandbox this engine does not enforce, as
	// sentences for the user.
	Unenforced []string
	// Socket is nil unless the engine is reached over a Unix socket.
	Socket *Socket
}

// A Socket is the file of a Unix socket.
type Socket struct {
	Path string
	Mode fs.FileMode
	// Open reports that every user of the machine may use it, which makes each
	// of them root.
	Open bool
}

// Info asks the engine what it is.
func (e *Engine) Info(ctx context.Context) (Info, error) {
	version, err := e.api.ServerVersion(ctx, client.ServerVersionOptions{})
	if err != nil {
		return Info{}, e.Explain(err)
	}
	answer, err := e.api.Info(ctx, client.InfoOptions{})
	if err != nil {
		return Info{}, e.Explain(err)
	}
	engine := answer.Info
	info := Info{
		Host: e.address, Local: e.Local(),
		API: e.api.ClientVersion(), EngineAPI: version.APIVersion,
		Name: version.Platform.Name, Version: version.Version,
		Platform: version.Os + "/" + version.Arch,
		System:   engine.OperatingSystem, Kernel: engine.KernelVersion,
		CPUs: engine.NCPU, Memory: engine.MemTotal,
		CgroupVersion: engine.CgroupVersion, CgroupDriver: engine.CgroupDriver,
		Storage: engine.Driver, Root: engine.DockerRootDir,
		Containers: engine.Containers, Images: engine.Images,
		Warnings: engine.Warnings,
	}
	for _, option := range engine.SecurityOptions {
		info.Security = append(info.Security, securityName(option))
	}
	info.Rootless = slices.Contains(info.Security, "rootless")
	info.Podman = slices.ContainsFunc(version.Components, func(c system.ComponentVersion) bool {
		return strings.Contains(strings.ToLower(c.Name), "podman")
	})
	info.Unenforced = unenforced(info, engine)
	info.Socket = socketOf(e.address)
	return info, nil
}

// securityName reads "name=seccomp,profile=default", and the bare names of
// older engines.
func securityName(option string) string {
	for field := range strings.SplitSeq(option, ",") {
		if name, ok := strings.CutPrefix(field, "name="); ok {
			return name
		}
	}
	return option
}

func unenforced(info Info, engine system.Info) []string {
	var missing []string
	for _, check := range []struct {
		works bool
		text  string
	}{
		{versions.GreaterThanOrEqualTo(info.EngineAPI, oldestAPI), "the engine is older than API " + oldestAPI + "; some limits may have no effect"},
		{engine.MemoryLimit, "memory limits have no effect"},
		{!engine.MemoryLimit || engine.SwapLimit, "swap is not limited: a container may use as much swap again as it has memory"},
		{engine.CPUCfsQuota, "processor limits have no effect"},
		{engine.PidsLimit, "limits of the number of processes have no effect"},
		{slices.Contains(info.Security, "seccomp"), "system calls are not filtered (no seccomp)"},
		{!strings.Contains(strings.Join(engine.SecurityOptions, " "), "unconfined"), "system calls are not filtered (seccomp is unconfined)"},
	} {
		if !check.works {
			missing = append(missing, check.text)
		}
	}
	return missing
}

func socketOf(host string) *Socket {
	path, ok := strings.CutPrefix(host, "unix://")
	if !ok {
		return nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil // the engine answered, so it is not here but behind a proxy
	}
	return &Socket{Path: path, Mode: info.Mode().Perm(), Open: info.Mode().Perm()&0o002 != 0}
}
