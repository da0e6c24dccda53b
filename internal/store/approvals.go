package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/dockgate/dockgate/internal/approval"
)

// Revision implements [approval.Store].
func (db *DB) Revision(ctx context.Context) (int64, error) {
	var revision int64
	err := db.sql.QueryRowContext(ctx, `SELECT revision FROM approval_revision`).Scan(&revision)
	return revision, db.failed(err)
}

// Load implements [approval.Store].
func (db *DB) Load(ctx context.Context) (content approval.Content, err error) {
	tx, err := db.sql.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return approval.Content{}, db.failed(err)
	}
	defer func() { err = errors.Join(err, ignoreDone(tx.Rollback())) }()
	if err := tx.QueryRowContext(ctx, `SELECT revision FROM approval_revision`).Scan(&content.Revision); err != nil {
		return approval.Content{}, db.failed(err)
	}
	rows, err := tx.QueryContext(ctx, `SELECT server, body, tools FROM approvals`)
	err = each(rows, err, func(rows *sql.Rows) error {
		var server string
		var body, tools []byte
		if err := rows.Scan(&server, &body, &tools); err != nil {
			return err
		}
		var a approval.Approval
		if err := json.Unmarshal(body, &a); err != nil {
			return fmt.Errorf("approval of %q: %w", server, err)
		}
		if a.Tools, err = unframePins(tools); err != nil {
			return fmt.Errorf("tools of %q: %w", server, err)
		}
		content.Approvals = append(content.Approvals, a)
		return nil
	})
	if err != nil {
		return approval.Content{}, db.failed(err)
	}
	rows, err = tx.QueryContext(ctx, `SELECT digest, body FROM questions`)
	err = each(rows, err, func(rows *sql.Rows) error {
		var digest string
		var body []byte
		if err := rows.Scan(&digest, &body); err != nil {
			return err
		}
		var q approval.Question
		if err := json.Unmarshal(body, &q); err != nil {
			return fmt.Errorf("question %s: %w", digest, err)
		}
		content.Questions = append(content.Questions, q)
		return nil
	})
	if err != nil {
		return approval.Content{}, db.failed(err)
	}
	return content, nil
}

// ignoreDone drops the error of a transaction that its context ended before.
func ignoreDone(err error) error {
	if errors.Is(err, sql.ErrTxDone) {
		return nil
	}
	return err
}

// Commit implements [approval.Store].
func (db *DB) Commit(ctx context.Context, revision int64, change approval.Change) (int64, error) {
	err := db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, `UPDATE approval_revision SET revision = revision + 1 WHERE revision = ?`, revision)
		if err != nil {
			return err
		}
		if moved, err := result.RowsAffected(); err != nil {
			return err
		} else if moved == 0 {
			return approval.ErrConflict
		}
		for _, key := range change.DeleteApprovals {
			_, err := tx.ExecContext(ctx, `DELETE FROM approvals WHERE server = ? AND grant_digest = ?`, key.Server, key.GrantDigest)
			if err != nil {
				return err
			}
		}
		for _, digest := range change.DeleteQuestions {
			if _, err := tx.ExecContext(ctx, `DELETE FROM questions WHERE digest = ?`, digest); err != nil {
				return err
			}
		}
		for _, a := range change.PutApprovals {
			if err := putApproval(ctx, tx, a); err != nil {
				return err
			}
		}
		for _, q := range change.PutQuestions {
			body, err := json.Marshal(q)
			if err != nil {
				return err
			}
			_, err = tx.ExecContext(ctx, `INSERT OR REPLACE INTO questions (digest, body) VALUES (?, ?)`, q.Digest, string(body))
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return revision + 1, nil
}

func putApproval(ctx context.Context, tx *sql.Tx, a approval.Approval) error {
	tools := framePins(a.Tools)
	a.Tools = nil
	body, err := json.Marshal(a)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT OR REPLACE INTO approvals (server, grant_digest, body, tools) VALUES (?, ?, ?, ?)`,
		a.Server, a.GrantDigest, string(body), tools)
	return err
}
