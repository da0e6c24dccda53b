package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/dockgate/dockgate/internal/inventory"
)

// keptOffers is how many offers a state folder holds: every digest and every
// setting that a server ever ran with would be one.
const keptOffers = 512

// Offers implements [inventory.Store].
func (db *DB) Offers(ctx context.Context, keys []inventory.Key) (map[inventory.Key]inventory.Offer, error) {
	wanted := make([][3]string, len(keys))
	for i, k := range keys {
		wanted[i] = [3]string{k.Spec, k.Capabilities, k.Era}
	}
	list, err := json.Marshal(wanted)
	if err != nil {
		return nil, err
	}
	found := make(map[inventory.Key]inventory.Offer, len(keys))
	rows, err := db.sql.QueryContext(ctx, `
		SELECT o.spec, o.capabilities, o.era, o.taken, o.body
		FROM json_each(?) AS wanted JOIN offers AS o
		ON o.spec = wanted.value ->> 0 AND o.capabilities = wanted.value ->> 1 AND o.era = wanted.value ->> 2`, string(list))
	err = each(rows, err, func(rows *sql.Rows) error {
		var key inventory.Key
		var taken int64
		var body []byte
		if err := rows.Scan(&key.Spec, &key.Capabilities, &key.Era, &taken, &body); err != nil {
			return err
		}
		offer, err := unframeOffer(body)
		if err != nil {
			return fmt.Errorf("offer of %s: %w", key.Spec, err)
		}
		offer.Taken = time.Unix(0, taken).UTC()
		found[key] = offer
		return nil
	})
	if err != nil {
		return nil, db.failed(err)
	}
	return found, nil
}

// PutOffer implements [inventory.Store]. Beyond 512 offers the oldest go.
func (db *DB) PutOffer(ctx context.Context, key inventory.Key, offer inventory.Offer) error {
	body := frameOffer(offer)
	return db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO offers (spec, capabilities, era, taken, body) VALUES (?, ?, ?, ?, ?)`,
			key.Spec, key.Capabilities, key.Era, offer.Taken.UnixNano(), body)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `DELETE FROM offers WHERE rowid IN
			(SELECT rowid FROM offers ORDER BY taken DESC, rowid DESC LIMIT -1 OFFSET ?)`, keptOffers)
		return err
	})
}

// FlushOffers drops what was offered under the digest of a Spec; of all if it
// is empty.
func (db *DB) FlushOffers(ctx context.Context, spec string) error {
	return db.exec(ctx, `DELETE FROM offers WHERE ?1 = '' OR spec = ?1`, spec)
}

// Eras implements [inventory.EraStore].
func (db *DB) Eras(ctx context.Context) (map[string]string, error) {
	eras := map[string]string{}
	rows, err := db.sql.QueryContext(ctx, `SELECT image, era FROM eras`)
	err = each(rows, err, func(rows *sql.Rows) error {
		var image, era string
		if err := rows.Scan(&image, &era); err != nil {
			return err
		}
		eras[image] = era
		return nil
	})
	if err != nil {
		return nil, db.failed(err)
	}
	return eras, nil
}

// PutEra implements [inventory.EraStore].
func (db *DB) PutEra(ctx context.Context, image, era string) error {
	return db.exec(ctx, `INSERT OR REPLACE INTO eras (image, era) VALUES (?, ?)`, image, era)
}
