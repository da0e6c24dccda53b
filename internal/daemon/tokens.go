package daemon

import (
	"context"
	"errors"
	"time"

	"github.com/dockgate/dockgate/internal/access"
	"github.com/dockgate/dockgate/internal/audit"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/secret"
)

// NewToken makes a token for HTTP clients. What it returns is the only place
// where the plain token is. One that cannot be recorded does not stay. A role
// that is not configured is an [*access.RoleError].
func (d *Daemon) NewToken(ctx context.Context, name, role string, expires time.Time) (access.Token, secret.Value, error) {
	token, plain, err := access.Mint(name, role, expires)
	if err == nil { // one that nobody could use is not made
		_, err = d.Now().Config.Admission.Roles.Of(principal.Principal{ID: name, Role: role})
	}
	if err != nil {
		return access.Token{}, secret.Value{}, err
	}
	if err := d.Store.AddToken(ctx, token); err != nil {
		return access.Token{}, secret.Value{}, err
	}
	detail := map[string]string{"token": name}
	if role != "" {
		detail["role"] = role
	}
	if !expires.IsZero() {
		detail["expires"] = token.Expires.Format(time.RFC3339)
	}
	if err := d.recordToken("made", detail); err != nil {
		return access.Token{}, secret.Value{}, errors.Join(err, d.Store.DeleteToken(context.WithoutCancel(ctx), name))
	}
	return token, plain, nil
}

// RevokeToken ends a token; gateways that run see it within 250 ms. It ends
// even if that cannot be recorded, which is an error all the same.
func (d *Daemon) RevokeToken(ctx context.Context, name string) error {
	if err := d.Store.DeleteToken(ctx, name); err != nil {
		return err
	}
	return d.recordToken("revoked", map[string]string{"token": name})
}

func (d *Daemon) recordToken(outcome string, detail map[string]string) error {
	return d.Audit.Append(audit.Record{Kind: audit.KindToken, Principal: principal.Local.ID, Outcome: outcome, Detail: detail})
}
