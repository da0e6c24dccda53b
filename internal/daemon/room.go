package daemon

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"

	"github.com/dockgate/dockgate/internal/policy"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/secret"
)

// A Room is a Daemon for several clients of one user, each over a connection
// of its own.
type Room struct{ *Daemon }

// Run does what a gateway does beside serving until ctx ends, and closes the
// Daemon.
func (r Room) Run(ctx context.Context) error {
	err := r.run(ctx, func(ctx context.Context) error {
		<-ctx.Done()
		return nil
	})
	return errors.Join(err, r.Close())
}

// Serve serves one client until it leaves or ctx ends, and closes the connection.
func (r Room) Serve(ctx context.Context, connection net.Conn) error {
	return r.Gateway.Serve(ctx, connection, output{connection}, principal.Local)
}

// output is the other half of a connection, which is closed with the first.
type output struct{ net.Conn }

// Close implements [io.Closer].
func (output) Close() error { return nil }

// HasProject reports whether the working directory has files that say
// something about its client: those that narrow, or one with secrets.
func (o Options) HasProject() (bool, error) {
	for _, name := range append(policy.ProjectFiles(), ".env") {
		_, err := os.Stat(filepath.Join(o.Dir, name))
		if err == nil {
			return true, nil
		}
		if !errors.Is(err, os.ErrNotExist) {
			return false, err
		}
	}
	return false, nil
}

// Fingerprint identifies all that the surroundings of a client say: the
// catalogs as they read there, the values of the secrets that they name, and
// the working directory if it has files of its own. Clients with the same
// configuration and fingerprint can use the same servers.
func (o Options) Fingerprint(ctx context.Context) (string, error) {
	servers, _, err := LoadCatalog(ctx, o)
	if err != nil {
		return "", err
	}
	var needs []secret.Need
	for _, s := range servers.Servers() {
		for _, declared := range s.Secrets {
			needs = append(needs, secret.Need{Ref: secret.Ref{Name: declared.Name, Env: declared.Env}})
		}
		for _, h := range s.Helpers {
			for _, declared := range h.Secrets {
				needs = append(needs, secret.Need{Ref: secret.Ref{Name: declared.Name, Env: declared.Env}})
			}
		}
	}
	found, err := secret.Sources{Env: o.Env, Dir: o.Dir}.Resolve(ctx, needs)
	if err != nil {
		return "", err
	}
	values := make(map[string]string, len(found))
	for _, f := range found {
		values[f.Name+"\x00"+f.Env] = f.Value.Reveal()
	}
	dir := ""
	alone, err := o.HasProject()
	if err != nil {
		return "", err
	}
	if alone {
		dir = o.Dir
	}
	all, err := json.Marshal([]any{servers.Servers(), values, dir})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(all)
	return hex.EncodeToString(sum[:]), nil
}
