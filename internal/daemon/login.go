package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"

	"github.com/dockgate/dockgate/internal/audit"
	"github.com/dockgate/dockgate/internal/login"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/remote/door"
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
	client, err := door.NewClient(*spec.Remote)
	if err != nil {
		return nil, login.Server{}, err
	}
	return &login.Book{Vault: d.vault(), Client: client}, login.Server{Name: spec.Server, URL: at.String()}, nil
}

func (d *Daemon) vault() *login.Vault {
	return &login.Vault{Dir: filepath.Join(d.State, "logins"), Keychain: d.Keychain}
}

// An UnapprovedError is a server that nothing is sent to before it is approved.
type UnapprovedError struct{ Server string }

// Error names the server.
func (e *UnapprovedError) Error() string { return fmt.Sprintf("server %q is not approved", e.Server) }

// Hint says how it is approved.
func (e *UnapprovedError) Hint() string { return "approve it first with: dockgate approve " + e.Server }

// Login has a person log in to a remote server that is approved. Browse is
// called with the address that they are to open. A login that cannot be
// recorded does not stay. As is how the server's issuer knows the gateway.
func (d *Daemon) Login(ctx context.Context, who principal.Principal, server string, as login.Registration, browse func(ctx context.Context, url string) error) error {
	book, at, err := d.logins(ctx, who, server)
	if err != nil {
		return err
	}
	defer book.Client.CloseIdleConnections()
	book.Registration = as
	if err := book.Login(ctx, at, browse); err != nil {
		return err
	}
	if err := d.recordLogin(who, server, "in"); err != nil {
		return errors.Join(err, book.Logout(context.WithoutCancel(ctx), at))
	}
	return nil
}

// Logout forgets a login, to a server that may be in no catalog any more;
// [login.ErrNone] if there is none.
func (d *Daemon) Logout(ctx context.Context, who principal.Principal, server string) error {
	book := &login.Book{Vault: d.vault()}
	if err := book.Logout(ctx, login.Server{Name: server}); err != nil {
		return err
	}
	return d.recordLogin(who, server, "out")
}

func (d *Daemon) recordLogin(who principal.Principal, server, outcome string) error {
	return d.Audit.Append(audit.Record{Kind: audit.KindLogin, Principal: who.ID, Server: server, Outcome: outcome})
}

func (d *Daemon) logins(ctx context.Context, who principal.Principal, server string) (*login.Book, login.Server, error) {
	entry, err := d.Catalog().Server(server)
	if err != nil {
		return nil, login.Server{}, err
	}
	if entry.Remote == nil {
		return nil, login.Server{}, &NotRemoteError{Server: server}
	}
	made, err := d.Planner.Plan(ctx, who, server)
	if err == nil && !d.Caller.Approved(made) {
		err = &UnapprovedError{Server: server}
	}
	if err != nil {
		return nil, login.Server{}, err
	}
	book, at, err := d.book(made.Spec)
	if err == nil && entry.OAuth != nil {
		at.Scopes = entry.OAuth.Scopes
	}
	return book, at, err
}
