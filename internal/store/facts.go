package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/dockgate/dockgate/internal/inventory"
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

// Facts returns what was learned under names that begin with a prefix.
func (db *DB) Facts(ctx context.Context, prefix string) (map[string]json.RawMessage, error) {
	facts := map[string]json.RawMessage{}
	rows, err := db.sql.QueryContext(ctx, `SELECT name, value FROM facts WHERE substr(name, 1, length(?1)) = ?1`, prefix)
	err = each(rows, err, func(rows *sql.Rows) error {
		var name string
		var value []byte
		if err := rows.Scan(&name, &value); err != nil {
			return err
		}
		facts[name] = value
		return nil
	})
	if err != nil {
		return nil, db.failed(fmt.Errorf("facts %q: %w", prefix, err))
	}
	return facts, nil
}

// DeleteFact forgets what was learned under a name; nothing is no error.
func (db *DB) DeleteFact(ctx context.Context, name string) error {
	return db.exec(ctx, `DELETE FROM facts WHERE name = ?`, name)
}

// AddUses adds to how often it was asked what servers offer, in all gateways
// of the state folder together.
func (db *DB) AddUses(ctx context.Context, uses inventory.Uses) error {
	return db.exec(ctx, `INSERT INTO facts (name, value) VALUES ('uses', json_object('hits', ?1, 'misses', ?2))
		ON CONFLICT (name) DO UPDATE SET value = json_object('hits', (value ->> 'hits') + ?1, 'misses', (value ->> 'misses') + ?2)`,
		uses.Hits, uses.Misses)
}

// Uses is the sum of what was added.
func (db *DB) Uses(ctx context.Context) (uses inventory.Uses, err error) {
	return uses, db.Fact(ctx, "uses", &uses)
}
