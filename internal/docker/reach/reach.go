// Package reach reaches a Docker engine: by an address, a Docker context, or
// what the Docker command line would take; over a socket, TCP with or without
// certificates, or ssh.
//
// It decides which of these holds, in the order of the Docker command line, and
// what an error of the client means: no answer is an [*EngineError], anything
// else is in the engine's own words. It refuses contexts that do not exist and
// certificates that cannot be read. It says of an engine what of a sandbox is
// not enforced there, and whom its socket lets in. It changes nothing on an
// engine.
package reach

import (
	"fmt"

	"github.com/moby/moby/client"
)

// Options say which engine to use.
type Options struct {
	// Host is the engine's address, as in DOCKER_HOST and --host. It wins over
	// Context.
	Host string
	// Context is the name of a Docker context, as in DOCKER_CONTEXT. If it and
	// Host are empty, the current context of the Docker configuration is used.
	Context string
	// ConfigDir is the folder of the Docker configuration, with the contexts
	// and the registry credentials. Empty is the user's own, ~/.docker.
	ConfigDir string
	// CertPath is a folder with ca.pem, cert.pem and key.pem, as in
	// DOCKER_CERT_PATH. It counts with Host only.
	CertPath string
	// TLS says how far a Host with TLS is trusted.
	TLS TLSMode
}

// A TLSMode says whether a connection to a given host is encrypted.
type TLSMode int

// The modes. The Docker command line knows them as no variable at all,
// DOCKER_CERT_PATH alone, and DOCKER_TLS_VERIFY.
const (
	// TLSByCertificates encrypts if certificates are given, and verifies the
	// engine only if TLSVerify is asked for.
	TLSByCertificates TLSMode = iota
	// TLSVerify encrypts and verifies the engine's certificate.
	TLSVerify
)

// An Engine is an engine as it is reached. All methods may be called from any
// goroutine.
type Engine struct {
	api     *client.Client
	address string
}

// A Conn is an engine with its whole API, for the packages beside this one.
// What they return to others lets nobody else ask the engine by it.
type Conn struct {
	*Engine
	API *client.Client
}

// Connect returns the way to the engine that the options name; whoever calls
// it closes the API. It makes no connection: an engine that is down is an
// [*EngineError] of the first call that needs it. It fails only if the options,
// the Docker configuration or the certificates cannot be used.
func Connect(o Options) (*Conn, error) {
	target, err := resolveEndpoint(o)
	if err != nil {
		return nil, err
	}
	api, err := client.New(append(target.options, client.WithUserAgent("dockgate"))...)
	if err != nil {
		return nil, fmt.Errorf("connect to the engine at %s: %w", target.host, err)
	}
	return &Conn{Engine: &Engine{api: api, address: target.host}, API: api}, nil
}

// Host returns the engine's address, such as "unix:///var/run/docker.sock".
func (e *Engine) Host() string { return e.address }

// Local reports whether the engine is reached over a socket of this machine,
// so that host paths mean the same here and there. (The engine behind the
// socket may still be in a virtual machine that shares only some folders.)
func (e *Engine) Local() bool { return isSocket(e.address) }
