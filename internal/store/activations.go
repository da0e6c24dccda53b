package store

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/dockgate/dockgate/internal/principal"
)

// An Activation says that a server is active for a principal.
type Activation struct {
	Principal principal.Principal
	Server    string
	// Settings are the user's values for the entry's settings. Numbers come
	// back as [json.Number], so that none is changed.
	Settings map[string]any
	By       ActivatedBy
	At       time.Time
}

// ActivatedBy is who activated a server.
type ActivatedBy string

// Who activates.
const (
	Manual ActivatedBy = "manual"
	Auto   ActivatedBy = "auto"
)

// Activations returns the servers that are active for a principal, in the
// order in which they became so.
func (db *DB) Activations(ctx context.Context, who principal.Principal) ([]Activation, error) {
	return db.activations(ctx, who, "")
}

// Activation returns one of them; ok is false if the server is not active.
func (db *DB) Activation(ctx context.Context, who principal.Principal, server string) (a Activation, ok bool, err error) {
	found, err := db.activations(ctx, who, server)
	if err != nil || len(found) == 0 {
		return Activation{}, false, err
	}
	return found[0], true, nil
}

// activations returns all of a principal, or the one of a server if it has a name.
func (db *DB) activations(ctx context.Context, who principal.Principal, server string) ([]Activation, error) {
	var list []Activation
	rows, err := db.sql.QueryContext(ctx,
		`SELECT server, settings, by, at FROM activations
		WHERE principal = ?1 AND (?2 = '' OR server = ?2) ORDER BY at, server`, who.ID, server)
	err = each(rows, err, func(rows *sql.Rows) error {
		a := Activation{Principal: who}
		var settings []byte
		var at int64
		if err := rows.Scan(&a.Server, &settings, &a.By, &at); err != nil {
			return err
		}
		decoder := json.NewDecoder(bytes.NewReader(settings))
		decoder.UseNumber()
		if err := decoder.Decode(&a.Settings); err != nil {
			return fmt.Errorf("settings of %q: %w", a.Server, err)
		}
		a.At = time.Unix(0, at).UTC()
		list = append(list, a)
		return nil
	})
	if err != nil {
		return nil, db.failed(err)
	}
	return list, nil
}

// PutActivation makes a server active, or changes its settings.
func (db *DB) PutActivation(ctx context.Context, a Activation) error {
	if !a.Principal.Known() {
		return fmt.Errorf("activate %q: no principal", a.Server)
	}
	settings, err := json.Marshal(a.Settings)
	if err != nil {
		return fmt.Errorf("activate %q: settings: %w", a.Server, err)
	}
	return db.exec(ctx, `INSERT OR REPLACE INTO activations (principal, server, settings, by, at) VALUES (?, ?, ?, ?, ?)`,
		a.Principal.ID, a.Server, string(settings), string(a.By), a.At.UnixNano())
}

// DeleteActivation makes a server inactive; one that is not active is no
// error.
func (db *DB) DeleteActivation(ctx context.Context, who principal.Principal, server string) error {
	return db.exec(ctx, `DELETE FROM activations WHERE principal = ? AND server = ?`, who.ID, server)
}

// ActivationRevision returns a text that changes when anybody's activations do.
func (db *DB) ActivationRevision(ctx context.Context) (string, error) {
	var revision string
	err := db.sql.QueryRowContext(ctx,
		`SELECT count(*) || ' ' || ifnull(max(at), 0) || ' ' || ifnull(sum(at % 1000000007), 0) FROM activations`).Scan(&revision)
	if err != nil {
		return "", db.failed(fmt.Errorf("activations: %w", err))
	}
	return revision, nil
}
