package login

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"filippo.io/age"
	"github.com/gofrs/flock"
	"github.com/zalando/go-keyring"

	"github.com/dockgate/dockgate/internal/secret"
)

// A Vault keeps secrets in files that are encrypted with one key, each readable
// for its user only. The key is in the keychain of the operating system where
// there is one. Elsewhere it is in a file beside them: then the encryption
// protects copies of the secrets without the key, and nothing else. Several
// processes may use one folder.
type Vault struct {
	// Dir is the folder, made when it is first written to.
	Dir string
	// Keychain is where the key is kept; nil is a file.
	Keychain Keychain
}

// A Keychain keeps a key for a vault.
type Keychain interface {
	// Get returns what Set kept under a name.
	Get(name string) (string, error)
	// Set keeps a key.
	Set(name, key string) error
}

// System is the keychain of the operating system: macOS' Keychain, Windows'
// Credential Manager, or the Secret Service of a Linux desktop.
type System struct{}

const service = "dockgate"

// Get implements [Keychain].
func (System) Get(name string) (string, error) { return keyring.Get(service, name) }

// Set implements [Keychain].
func (System) Set(name, key string) error { return keyring.Set(service, name, key) }

// ErrNone says that a vault has nothing under a name.
var ErrNone = errors.New("nothing is kept under this name")

// A VaultError is a vault that cannot be used.
type VaultError struct {
	Dir string
	Err error
}

// Error names the folder and the cause.
func (e *VaultError) Error() string { return fmt.Sprintf("kept logins in %s: %v", e.Dir, e.Err) }

// Unwrap returns the cause.
func (e *VaultError) Unwrap() error { return e.Err }

// Hint says what the user can do.
func (e *VaultError) Hint() string {
	if errors.Is(e.Err, errKeychain) {
		return "unlock the keychain of the system; or remove the folder, and log in again"
	}
	return "make the folder readable and writable for this user; or remove it, and log in again"
}

var errKeychain = errors.New("their key is in the system's keychain, which does not give it")

// Get returns what is kept under a name, or [ErrNone].
func (v *Vault) Get(name string) (secret.Value, error) {
	sealed, err := os.ReadFile(v.file(name))
	if errors.Is(err, fs.ErrNotExist) {
		return secret.Value{}, ErrNone
	}
	if err != nil {
		return secret.Value{}, v.failed(err)
	}
	identity, err := v.identity()
	if err != nil {
		return secret.Value{}, v.failed(err)
	}
	opened, err := age.Decrypt(bytes.NewReader(sealed), identity)
	if err != nil {
		return secret.Value{}, v.failed(fmt.Errorf("%s: %w", filepath.Base(v.file(name)), err))
	}
	plain, err := io.ReadAll(opened)
	if err != nil {
		return secret.Value{}, v.failed(err)
	}
	return secret.NewValue(string(plain)), nil
}

// Put keeps a secret under a name, in place of what was there.
func (v *Vault) Put(ctx context.Context, name string, value secret.Value) error {
	if err := os.MkdirAll(v.Dir, 0o700); err != nil {
		return v.failed(err)
	}
	identity, err := v.ensureIdentity(ctx)
	if err != nil {
		return v.failed(err)
	}
	var sealed bytes.Buffer
	out, err := age.Encrypt(&sealed, identity.Recipient())
	if err == nil {
		_, err = io.WriteString(out, value.Reveal())
		err = errors.Join(err, out.Close())
	}
	if err != nil {
		return v.failed(err)
	}
	return v.failed(replace(v.file(name), sealed.Bytes()))
}

// Delete forgets what is kept under a name, or returns [ErrNone].
func (v *Vault) Delete(name string) error {
	err := os.Remove(v.file(name))
	if errors.Is(err, fs.ErrNotExist) {
		return ErrNone
	}
	return v.failed(err)
}

// Lock keeps other processes, and other holders in this one, from changing
// what is kept under a name, until unlock is called.
func (v *Vault) Lock(ctx context.Context, name string) (unlock func() error, err error) {
	if err := os.MkdirAll(v.Dir, 0o700); err != nil {
		return nil, v.failed(err)
	}
	lock := flock.New(v.file(name)+".lock", flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, lockEvery); err != nil {
		return nil, v.failed(err)
	}
	return lock.Close, nil
}

const lockEvery = 20 * time.Millisecond

func (v *Vault) failed(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &VaultError{Dir: v.Dir, Err: err}
}

func (v *Vault) file(name string) string { return filepath.Join(v.Dir, url.PathEscape(name)+".age") }

// keyFile has the key, or says that it is in the keychain.
func (v *Vault) keyFile() string { return filepath.Join(v.Dir, "key") }

const inKeychain = "keychain"

// identity returns the vault's key.
func (v *Vault) identity() (*age.X25519Identity, error) {
	content, err := os.ReadFile(v.keyFile())
	if err != nil {
		return nil, err
	}
	key := strings.TrimSpace(string(content))
	if key == inKeychain {
		if v.Keychain == nil {
			return nil, errKeychain
		}
		if key, err = v.Keychain.Get(v.Dir); err != nil {
			return nil, fmt.Errorf("%w: %w", errKeychain, err)
		}
	}
	return age.ParseX25519Identity(key)
}

// ensureIdentity returns the vault's key, and makes one if there is none.
func (v *Vault) ensureIdentity(ctx context.Context) (identity *age.X25519Identity, err error) {
	lock := flock.New(v.keyFile()+".lock", flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, lockEvery); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	identity, err = v.identity()
	if !errors.Is(err, fs.ErrNotExist) {
		return identity, err
	}
	if identity, err = age.GenerateX25519Identity(); err != nil {
		return nil, err
	}
	content := identity.String()
	if v.Keychain != nil && v.Keychain.Set(v.Dir, content) == nil {
		content = inKeychain
	}
	return identity, replace(v.keyFile(), []byte(content+"\n"))
}

// replace writes a file as a whole or not at all, for its user only.
func replace(path string, content []byte) error {
	fresh, err := os.CreateTemp(filepath.Dir(path), ".new-*") // with mode 0600
	if err != nil {
		return err
	}
	_, err = fresh.Write(content)
	err = errors.Join(err, fresh.Sync(), fresh.Close())
	if err == nil {
		err = os.Rename(fresh.Name(), path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(fresh.Name()))
	}
	return err
}
