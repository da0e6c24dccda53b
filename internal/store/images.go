package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/dockgate/dockgate/internal/sandbox"
)

// A ResolvedImage is an image as a reference was resolved.
type ResolvedImage struct {
	sandbox.Image
	// Resolved is when the reference stood for this image.
	Resolved time.Time
}

// storedImage is the JSON form: [sandbox.Image] leaves its Config out.
type storedImage struct {
	Pin      sandbox.Pin         `json:"pin"`
	Config   sandbox.ImageConfig `json:"config"`
	Resolved time.Time           `json:"resolved"`
}

func (s storedImage) image(ref string) ResolvedImage {
	return ResolvedImage{Image: sandbox.Image{Ref: ref, Pin: s.Pin, Config: s.Config}, Resolved: s.Resolved}
}

// Image returns what a reference was resolved to last; ok is false if it
// never was.
func (db *DB) Image(ctx context.Context, ref string) (image ResolvedImage, ok bool, err error) {
	var body []byte
	err = db.sql.QueryRowContext(ctx, `SELECT body FROM images WHERE ref = ?`, ref).Scan(&body)
	if errors.Is(err, sql.ErrNoRows) {
		return ResolvedImage{}, false, nil
	}
	var stored storedImage
	if err == nil {
		err = json.Unmarshal(body, &stored)
	}
	if err != nil {
		return ResolvedImage{}, false, db.failed(fmt.Errorf("image %q: %w", ref, err))
	}
	return stored.image(ref), true, nil
}

// Images returns all resolved images, by reference.
func (db *DB) Images(ctx context.Context) (map[string]ResolvedImage, error) {
	images := map[string]ResolvedImage{}
	rows, err := db.sql.QueryContext(ctx, `SELECT ref, body FROM images`)
	err = each(rows, err, func(rows *sql.Rows) error {
		var ref string
		var body []byte
		if err := rows.Scan(&ref, &body); err != nil {
			return err
		}
		var stored storedImage
		if err := json.Unmarshal(body, &stored); err != nil {
			return fmt.Errorf("image %q: %w", ref, err)
		}
		images[ref] = stored.image(ref)
		return nil
	})
	if err != nil {
		return nil, db.failed(err)
	}
	return images, nil
}

// PutImage keeps what a reference was resolved to.
func (db *DB) PutImage(ctx context.Context, image ResolvedImage) error {
	body, err := json.Marshal(storedImage{Pin: image.Pin, Config: image.Config, Resolved: image.Resolved.UTC()})
	if err != nil {
		return err
	}
	return db.exec(ctx, `INSERT OR REPLACE INTO images (ref, body) VALUES (?, ?)`, image.Ref, string(body))
}
