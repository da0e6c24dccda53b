package setup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"github.com/dockgate/dockgate/internal/policy"
	"github.com/dockgate/dockgate/internal/secret"
)

// HasProject reports whether the working directory has files that say
// something about its client: those that narrow, or one with secrets.
func (in Inputs) HasProject() (bool, error) {
	for _, name := range append(policy.ProjectFiles(), ".env") {
		_, err := os.Stat(filepath.Join(in.Dir, name))
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
func (in Inputs) Fingerprint(ctx context.Context) (string, error) {
	servers, _, err := LoadCatalog(ctx, in)
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
	found, err := secret.Sources{Env: in.Env, Dir: in.Dir}.Resolve(ctx, needs)
	if err != nil {
		return "", err
	}
	values := make(map[string]string, len(found))
	for _, f := range found {
		values[f.Name+"\x00"+f.Env] = f.Value.Reveal()
	}
	dir := ""
	alone, err := in.HasProject()
	if err != nil {
		return "", err
	}
	if alone {
		dir = in.Dir
	}
	all, err := json.Marshal([]any{servers.Servers(), values, dir})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(all)
	return hex.EncodeToString(sum[:]), nil
}
