package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/dockgate/dockgate/internal/access"
)

// TokenRevision implements [access.Source].
func (db *DB) TokenRevision(ctx context.Context) (int64, error) {
	var revision int64
	err := db.sql.QueryRowContext(ctx, `SELECT revision FROM token_revision`).Scan(&revision)
	return revision, db.failed(err)
}

// Tokens implements [access.Source]. They come by name.
func (db *DB) Tokens(ctx context.Context) ([]access.Token, error) {
	var list []access.Token
	rows, err := db.sql.QueryContext(ctx, `SELECT name, role, digest, created, expires FROM tokens ORDER BY name`)
	err = each(rows, err, func(rows *sql.Rows) error {
		var t access.Token
		var digest []byte
		var created, expires int64
		if err := rows.Scan(&t.Name, &t.Role, &digest, &created, &expires); err != nil {
			return err
		}
		copy(t.Digest[:], digest)
		t.Created, t.Expires = moment(created), moment(expires)
		list = append(list, t)
		return nil
	})
	if err != nil {
		return nil, db.failed(err)
	}
	return list, nil
}

// AddToken keeps a token. If there is one of its name it returns an
// [*access.TokenExistsError] and changes nothing.
func (db *DB) AddToken(ctx context.Context, t access.Token) error {
	added := int64(0)
	err := db.write(ctx, func(ctx context.Context, tx *sql.Tx) (err error) {
		added, err = reviseTokens(ctx, tx, `INSERT INTO tokens (name, role, digest, created, expires) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (name) DO NOTHING`, t.Name, t.Role, t.Digest[:], nanos(t.Created), nanos(t.Expires))
		return err
	})
	if err == nil && added == 0 {
		err = &access.TokenExistsError{Name: t.Name}
	}
	return err
}

// DeleteToken revokes a token. If there is none of that name it returns an
// [*access.UnknownTokenError].
func (db *DB) DeleteToken(ctx context.Context, name string) error {
	deleted := int64(0)
	err := db.write(ctx, func(ctx context.Context, tx *sql.Tx) (err error) {
		deleted, err = reviseTokens(ctx, tx, `DELETE FROM tokens WHERE name = ?`, name)
		return err
	})
	if err == nil && deleted == 0 {
		err = &access.UnknownTokenError{Name: name}
	}
	return err
}

// reviseTokens changes the tokens, and the revision with them. It returns how
// many it changed.
func reviseTokens(ctx context.Context, tx *sql.Tx, statement string, args ...any) (changed int64, err error) {
	result, err := tx.ExecContext(ctx, statement, args...)
	if err != nil {
		return 0, err
	}
	if changed, err = result.RowsAffected(); err != nil || changed == 0 {
		return 0, err
	}
	_, err = tx.ExecContext(ctx, `UPDATE token_revision SET revision = revision + 1`)
	return changed, err
}

// nanos is a time as it is stored; 0 is none.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// moment is the time that nanos stored.
func moment(nanos int64) time.Time {
	if nanos == 0 {
		return time.Time{}
	}
	return time.Unix(0, nanos).UTC()
}
