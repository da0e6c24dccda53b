package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
)

// Fact reads what was learned under a name into value, which is left alone if
// nothing was.
func (db *DB) Fact(ctx context.Context, name string, value any) error {
	var body []byte
	err := db.sql.QueryRowContext(ctx, `SELECT value FROM facts WHERE name = ?`, name).Scan(&body)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(body, value)
	}
	if err != nil {
		return db.failed(fmt.Errorf("fact %q: %w", name, err))
	}
	return nil
}

// SetFact keeps what was learned under a name.
func (db *DB) SetFact(ctx context.Context, name string, value any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("fact %q: %w", name, err)
	}
	return db.exec(ctx, `INSERT OR REPLACE INTO facts (name, value) VALUES (?, ?)`, name, string(body))
}
