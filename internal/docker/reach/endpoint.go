package reach

import (
	"fmt"
	"path/filepath"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/cli/cli/config"
	clicontext "github.com/docker/cli/cli/context"
	"github.com/docker/cli/cli/context/docker"
	"github.com/docker/cli/cli/context/store"
	"github.com/moby/moby/client"
)

// defaultContext is the name that stands for no context.
const defaultContext = "default"

// An endpoint is an engine's address and how to get there.
type endpoint struct {
	host    string
	options []client.Opt
}

// resolveEndpoint finds the engine in the order of the Docker command line:
// a given host, a given context, the configuration's current context, the
// platform's default.
func resolveEndpoint(o Options) (endpoint, error) {
	dir := o.ConfigDir
	if dir == "" {
		dir = config.Dir()
	}
	var (
		target docker.Endpoint
		err    error
	)
	switch {
	case o.Host != "":
		target, err = hostEndpoint(o)
	case o.Context != "":
		target, err = contextEndpoint(dir, o.Context)
	default:
		file, loadErr := config.Load(dir)
		if loadErr != nil {
			return endpoint{}, fmt.Errorf("docker configuration: %w", loadErr)
		}
		target, err = contextEndpoint(dir, file.CurrentContext)
	}
	if err != nil {
		return endpoint{}, err
	}
	options, err := target.ClientOpts()
	if err != nil {
		return endpoint{}, fmt.Errorf("engine at %s: %w", target.Host, err)
	}
	return endpoint{host: target.Host, options: options}, nil
}

func hostEndpoint(o Options) (docker.Endpoint, error) {
	host := o.Host
	if !strings.Contains(host, "://") {
		host = "tcp://" + host
	}
	target := docker.Endpoint{EndpointMeta: docker.EndpointMeta{Host: host}}
	if isSocket(host) || (o.CertPath == "" && o.TLS != TLSVerify) {
		return target, nil
	}
	target.SkipTLSVerify = o.TLS != TLSVerify
	if o.CertPath == "" {
		// The system's own authorities.
		target.TLSData = &clicontext.TLSData{}
		return target, nil
	}
	data, err := clicontext.TLSDataFromFiles(
		filepath.Join(o.CertPath, "ca.pem"),
		filepath.Join(o.CertPath, "cert.pem"),
		filepath.Join(o.CertPath, "key.pem"),
	)
	if err != nil {
		return docker.Endpoint{}, fmt.Errorf("certificates for the engine at %s: %w", host, err)
	}
	target.TLSData = data
	return target, nil
}

// A ContextError says that there is no Docker context of that name.
type ContextError struct{ Name string }

// Error names the context.
func (e *ContextError) Error() string {
	return fmt.Sprintf("docker context %q: there is no such context", e.Name)
}

// Hint says where all contexts are listed.
func (e *ContextError) Hint() string { return "list the contexts with: docker context ls" }

func contextEndpoint(dir, name string) (docker.Endpoint, error) {
	if name == "" || name == defaultContext {
		return docker.Endpoint{EndpointMeta: docker.EndpointMeta{Host: client.DefaultDockerHost}}, nil
	}
	contexts := store.New(filepath.Join(dir, "contexts"), store.NewConfig(
		func() any { return &map[string]any{} },
		store.EndpointTypeGetter(docker.DockerEndpoint, func() any { return &docker.EndpointMeta{} }),
	))
	metadata, err := contexts.GetMetadata(name)
	if cerrdefs.IsNotFound(err) {
		return docker.Endpoint{}, &ContextError{Name: name}
	}
	if err != nil {
		return docker.Endpoint{}, fmt.Errorf("docker context %q: %w", name, err)
	}
	meta, err := docker.EndpointFromContext(metadata)
	if err != nil {
		return docker.Endpoint{}, fmt.Errorf("docker context %q: %w", name, err)
	}
	target, err := docker.WithTLSData(contexts, name, meta)
	if err != nil {
		return docker.Endpoint{}, fmt.Errorf("docker context %q: %w", name, err)
	}
	if target.Host == "" {
		target.Host = client.DefaultDockerHost
	}
	return target, nil
}

func isSocket(host string) bool {
	scheme, _, _ := strings.Cut(host, "://")
	return scheme == "unix" || scheme == "npipe"
}
