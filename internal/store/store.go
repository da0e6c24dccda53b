// Package store keeps a gateway's state in one SQLite database in the state
// folder: approvals and questions, what servers offered, resolved images, and
// which servers are active for whom.
//
// It decides nothing. It refuses a folder on a network file system, or one
// that is shared between a host and a virtual machine, because the processes
// that meet in the database need one kernel; and a database that a newer
// version wrote.
//
// It guarantees that several processes may use one folder at the same time:
// transactions are short and take the write lock at once, so that they queue
// and do not fail. A database is created and brought up to date by one
// process, and nobody sees it half done.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
	_ "modernc.org/sqlite" // the database driver "sqlite"
)

// FileName is the database's name in the state folder.
const FileName = "dockgate.db"

// busyTimeout is how long a transaction waits for those of other processes.
const busyTimeout = 10 * time.Second

// A DB is an open state folder. Its methods may be called at the same time.
type DB struct {
	dir     string
	stateID string
	sql     *sql.DB
	// writing queues this process's own write transactions, which is fairer
	// and cheaper than SQLite's waiting.
	writing sync.Mutex
}

// Open opens a state folder, and creates it with its database if need be: the
// folder for its user only, the files as well. Errors are of type [Error],
// [NewerError] or [NetworkError], each with a hint.
func Open(ctx context.Context, dir string) (*DB, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, &Error{Dir: dir, Err: err}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, &Error{Dir: dir, Err: err}
	}
	if kind, err := networkKind(dir); err != nil {
		return nil, &Error{Dir: dir, Err: err}
	} else if kind != "" {
		return nil, &NetworkError{Dir: dir, Kind: kind}
	}
	db := &DB{dir: dir}
	if err := db.open(ctx); err != nil {
		return nil, err
	}
	return db, nil
}

func (db *DB) open(ctx context.Context) error {
	file := filepath.Join(db.dir, FileName)
	if info, err := os.Stat(file); err == nil && info.Size() > 0 {
		current, err := db.attach(ctx, file)
		if err != nil || current {
			return err
		}
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &Error{Dir: db.dir, Err: err}
	}
	if err := db.update(ctx, file); err != nil {
		return err
	}
	current, err := db.attach(ctx, file)
	if err == nil && !current {
		err = &Error{Dir: db.dir, Err: errors.New("the database was replaced while it was opened")}
	}
	return err
}

// attach opens the database if its schema is current.
func (db *DB) attach(ctx context.Context, file string) (current bool, err error) {
	pool, err := connect(file)
	if err != nil {
		return false, db.failed(err)
	}
	version, err := schemaVersion(ctx, pool)
	switch {
	case err != nil:
		err = db.failed(err)
	case version > newestSchema():
		err = &NewerError{Dir: db.dir, Found: version, Known: newestSchema()}
	case version == newestSchema():
		err = pool.QueryRowContext(ctx, `SELECT id FROM state`).Scan(&db.stateID)
		if err == nil {
			db.sql = pool
			return true, nil
		}
		err = db.failed(err)
	}
	return false, errors.Join(err, pool.Close())
}

// update creates the database, or brings it up to date, while no other
// process does.
func (db *DB) update(ctx context.Context, file string) (err error) {
	lock := flock.New(filepath.Join(db.dir, "store.lock"), flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, 20*time.Millisecond); err != nil {
		return &Error{Dir: db.dir, Err: err}
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if info, err := os.Stat(file); err == nil && info.Size() > 0 {
		if err := migrate(ctx, file); err != nil {
			return db.failed(err)
		}
		return nil
	}
	// A new database is made beside its place, and moved there when it is
	// whole.
	fresh := file + ".new"
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		if err := os.Remove(fresh + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return &Error{Dir: db.dir, Err: err}
		}
	}
	created, err := os.OpenFile(fresh, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return &Error{Dir: db.dir, Err: err}
	}
	if err := created.Close(); err != nil {
		return &Error{Dir: db.dir, Err: err}
	}
	if err := migrate(ctx, fresh); err != nil {
		return errors.Join(db.failed(err), os.Remove(fresh))
	}
	if err := os.Rename(fresh, file); err != nil {
		return &Error{Dir: db.dir, Err: err}
	}
	return nil
}

func connect(file string) (*sql.DB, error) {
	path := filepath.ToSlash(file)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	query := url.Values{
		"_txlock": {"immediate"},
		"_pragma": {
			fmt.Sprintf("busy_timeout(%d)", busyTimeout.Milliseconds()), "foreign_keys(1)", "synchronous(normal)",
		},
		// The file was made before: with another name it must not appear.
		"mode": {"rw"},
	}
	name := url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: query.Encode()}
	pool, err := sql.Open("sqlite", name.String())
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(4)
	return pool, nil
}

// Close closes the database.
func (db *DB) Close() error {
	if err := db.sql.Close(); err != nil {
		return db.failed(err)
	}
	return nil
}

// Dir returns the state folder's absolute path.
func (db *DB) Dir() string { return db.dir }

// StateID returns the folder's random id, which labels what its gateways make.
func (db *DB) StateID() string { return db.stateID }

// Verify reads the whole database and reports damage.
func (db *DB) Verify(ctx context.Context) error {
	var result string
	if err := db.sql.QueryRowContext(ctx, `PRAGMA integrity_check(1)`).Scan(&result); err != nil {
		return db.failed(err)
	}
	if result != "ok" {
		return &Error{Dir: db.dir, Err: errors.New(result), damaged: true}
	}
	return nil
}

// write runs a short transaction that nothing interrupts once it began: a
// commit that is cut off would leave open whether it happened.
func (db *DB) write(ctx context.Context, do func(context.Context, *sql.Tx) error) error {
	db.writing.Lock()
	defer db.writing.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	tx, err := db.sql.BeginTx(ctx, nil)
	if err != nil {
		return db.failed(err)
	}
	if err := do(ctx, tx); err != nil {
		if rollback := tx.Rollback(); rollback != nil {
			err = errors.Join(err, rollback)
		}
		return db.failed(err)
	}
	if err := tx.Commit(); err != nil {
		return db.failed(err)
	}
	return nil
}

// exec is write for one statement.
func (db *DB) exec(ctx context.Context, statement string, args ...any) error {
	return db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, statement, args...)
		return err
	})
}

// each calls row for every row of a query.
func each(rows *sql.Rows, before error, row func(*sql.Rows) error) (err error) {
	if before != nil {
		return before
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := row(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
