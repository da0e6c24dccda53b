package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"io/fs"
	"strconv"
	"strings"

	"github.com/pressly/goose/v3"
)

//go:embed migrations/*.sql
var migrations embed.FS

// newestSchema is the version that the last migration leads to.
func newestSchema() int64 {
	entries, err := migrations.ReadDir("migrations")
	if err != nil || len(entries) == 0 {
		panic("store: no embedded migrations")
	}
	number, _, _ := strings.Cut(entries[len(entries)-1].Name(), "_")
	version, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		panic("store: migration without a number: " + err.Error())
	}
	return version
}

// schemaVersion reads what goose keeps, without goose: this is on the way of
// every start. An empty database has version 0.
func schemaVersion(ctx context.Context, pool *sql.DB) (int64, error) {
	var tables int
	err := pool.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema WHERE name = 'goose_db_version'`).Scan(&tables)
	if err != nil || tables == 0 {
		return 0, err
	}
	var version sql.NullInt64
	err = pool.QueryRowContext(ctx, `SELECT max(version_id) FROM goose_db_version WHERE is_applied = 1`).Scan(&version)
	return version.Int64, err
}

// migrate brings a database up to date. Each migration is a transaction.
func migrate(ctx context.Context, file string) (err error) {
	pool, err := connect(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	if _, err := pool.ExecContext(ctx, `PRAGMA journal_mode = wal`); err != nil {
		return err
	}
	scripts, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, pool, scripts,
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return err
	}
	_, err = provider.Up(ctx)
	return err
}
