package daemon

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"

	"github.com/dockgate/dockgate/internal/login"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/remote"
	"github.com/dockgate/dockgate/internal/sandbox"
)

// A NotRemoteError is a server that one does not log in to.
type NotRemoteError struct{ Server string }

// Error names the server.
func (e *NotRemoteError) Error() string {
	return fmt.Sprintf("server %q runs here, and takes no login", e.Server)
}

// book returns the logins to a remote server, and what this one is kept under.
// What its URL has of secrets is not part of it.
func (d *Daemon) book(spec sandbox.Spec) (*login.Book, login.Server, error) {
	at, err := url.Parse(spec.Remote.URL)
	if err != nil {
		return nil, login.Server{}, err
	}
	at.RawQuery, at.Fragment = "", ""
	client, err := remote.NewClient(*spec.Remote)
	if err != nil {
		return nil, login.Server{}, err
	}
	vault := &login.Vault{Dir: filepath.Join(d.State, "logins"), Keychain: login.System{}}
	return &login.Book{Vault: vault, Client: client}, login.Server{Name: spec.Server, URL: at.String()}, nil
}

// Login has a person log in to a remote server. Browse is called with the
// address that they are to open.
func (d *Daemon) Login(ctx context.Context, who principal.Principal, server string, browse func(ctx context.Context, url string) error) error {
	book, at, err := d.logins(ctx, who, server)
	if err != nil {
		return err
	}
	defer book.Client.CloseIdleConnections()
	return book.Login(ctx, at, browse)
}

// Logout forgets a login.
func (d *Daemon) Logout(ctx context.Context, who principal.Principal, server string) error {
	book, at, err := d.logins(ctx, who, server)
	if err != nil {
		return err
	}
	return book.Logout(ctx, at)
}

func (d *Daemon) logins(ctx context.Context, who principal.Principal, server string) (*login.Book, login.Server, error) {
	entry, err := d.Catalog.Server(server)
	if err != nil {
		return nil, login.Server{}, err
	}
	if entry.Remote == nil {
		return nil, login.Server{}, &NotRemoteError{Server: server}
	}
	made, err := d.Planner.Plan(ctx, who, server)
	if err != nil {
		return nil, login.Server{}, err
	}
	return d.book(made.Spec)
}
