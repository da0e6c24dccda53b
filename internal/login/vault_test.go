package login_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/zalando/go-keyring"

	"github.com/dockgate/dockgate/internal/login"
	"github.com/dockgate/dockgate/internal/secret"
)

// A chain is a keychain in memory.
type chain struct {
	mu     sync.Mutex
	keys   map[string]string
	locked error
}

func (c *chain) Get(name string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.keys[name], c.locked
}

func (c *chain) Set(name, key string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.locked == nil {
		c.keys[name] = key
	}
	return c.locked
}

func TestVault(t *testing.T) {
	for name, keychain := range map[string]login.Keychain{
		"a file": nil, "a keychain": &chain{keys: map[string]string{}}, "a locked keychain": &chain{locked: errors.New("locked")},
	} {
		t.Run(name, func(t *testing.T) {
			v := &login.Vault{Dir: filepath.Join(t.TempDir(), "logins"), Keychain: keychain}
			if _, err := v.Get("a"); !errors.Is(err, login.ErrNone) {
				t.Errorf("Get of nothing = %v, want ErrNone", err)
			}
			names := []string{"a", "a/b", "..", "ä b", strings.Repeat("x", 64)}
			var together sync.WaitGroup
			for _, name := range names {
				together.Go(func() {
					if err := v.Put(t.Context(), name, secret.NewValue("old")); err != nil {
						t.Errorf("Put(%q) = %v", name, err)
					}
					if err := v.Put(t.Context(), name, secret.NewValue("value of "+name)); err != nil {
						t.Errorf("Put(%q) = %v", name, err)
					}
				})
			}
			together.Wait()
			again := &login.Vault{Dir: v.Dir, Keychain: keychain}
			for _, name := range names {
				if got, err := again.Get(name); err != nil || got.Reveal() != "value of "+name {
					t.Errorf("Get(%q) = %q, %v", name, got.Reveal(), err)
				}
			}
			key, err := os.ReadFile(filepath.Join(v.Dir, "key"))
			check(t, err)
			if inFile := strings.Contains(string(key), "AGE-SECRET-KEY"); inFile != (name != "a keychain") {
				t.Errorf("the key is in the file: %v", inFile)
			}
			check(t, v.Delete("a"))
			if err := v.Delete("a"); !errors.Is(err, login.ErrNone) {
				t.Errorf("Delete again = %v, want ErrNone", err)
			}
		})
	}
}

// A key that cannot be had is an error, and never replaced by another one.
func TestVaultFails(t *testing.T) {
	keys := &chain{keys: map[string]string{}}
	v := &login.Vault{Dir: t.TempDir(), Keychain: keys}
	check(t, v.Put(t.Context(), "a", secret.NewValue("x")))
	keys.locked = errors.New("locked")
	var broken *login.VaultError
	for _, v := range []*login.Vault{v, {Dir: v.Dir}} {
		if _, err := v.Get("a"); !errors.As(err, &broken) || !strings.Contains(broken.Hint(), "keychain") {
			t.Errorf("Get without the keychain = %v, want a VaultError", err)
		}
		if err := v.Put(t.Context(), "b", secret.NewValue("x")); !errors.As(err, &broken) {
			t.Errorf("Put without the keychain = %v, want a VaultError", err)
		}
	}
	keys.locked = nil
	check(t, os.WriteFile(filepath.Join(v.Dir, "a.age"), []byte("age-encryption.org/v1\nx"), 0o600))
	if _, err := v.Get("a"); !errors.As(err, &broken) || broken.Hint() == "" {
		t.Errorf("Get of a damaged file = %v, want a VaultError", err)
	}
}

func TestSystem(t *testing.T) {
	keyring.MockInit()
	var system login.System
	if _, err := system.Get("a"); err == nil {
		t.Error("Get of nothing = nil")
	}
	check(t, system.Set("a", "key"))
	if got, err := system.Get("a"); err != nil || got != "key" {
		t.Errorf("Get = %q, %v, want key", got, err)
	}
}
