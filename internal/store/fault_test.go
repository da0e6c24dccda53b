package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dockgate/dockgate/internal/store"
)

func TestDamage(t *testing.T) {
	tests := []struct {
		name   string
		damage func(content []byte) []byte
	}{
		{"not a database", func([]byte) []byte { return []byte("this is a note, not a database, and long enough to be read") }},
		{"cut off", func(content []byte) []byte { return content[:len(content)/2] }},
		{"overwritten", func(content []byte) []byte {
			return append(content[:100:100], bytes.Repeat([]byte{0xff}, len(content)-100)...)
		}},
	}
	for _, tt := range tests {
		dir := t.TempDir()
		db, err := store.Open(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		for n := range 100 {
			if err := db.PutEra(t.Context(), fmt.Sprintf("image%d", n), strings.Repeat("x", 1000)); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, store.FileName)
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		content = tt.damage(content)
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		db, err = store.Open(t.Context(), dir)
		if err == nil {
			err = db.Verify(t.Context())
			if closing := db.Close(); closing != nil {
				t.Error(closing)
			}
		}
		var fault *store.Error
		if !errors.As(err, &fault) || !strings.Contains(fault.Hint(), "damaged") || !strings.Contains(fault.Hint(), file) {
			t.Errorf("%s: Open and Verify = %v, want an error with a hint that %s is damaged", tt.name, err, file)
		}
		if after, err := os.ReadFile(file); err != nil || !bytes.Equal(after, content) {
			t.Errorf("%s: the damaged file was changed (%v), want it kept for repair", tt.name, err)
		}
	}
}

func TestNewerSchema(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir)
	if err := db.Exec(`INSERT INTO goose_db_version (version_id, is_applied) VALUES (999, 1)`); err != nil {
		t.Fatal(err)
	}
	_, err := store.Open(t.Context(), dir)
	var newer *store.NewerError
	if !errors.As(err, &newer) || newer.Found != 999 || newer.Known != store.NewestSchema() || newer.Hint() == "" {
		t.Errorf("Open of a newer database = %v, want a NewerError of 999", err)
	}
}

func TestNotAFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, filepath.Join(file, "state")} {
		_, err := store.Open(t.Context(), dir)
		var fault *store.Error
		if !errors.As(err, &fault) || !strings.Contains(fault.Hint(), "not a folder") {
			t.Errorf("Open(%s) = %v, want an error with a hint that it is not a folder", dir, err)
		}
	}
}

func TestLeftovers(t *testing.T) {
	for _, leftovers := range [][]string{
		{store.FileName},
		{store.FileName + ".new"},
		{store.FileName + ".new", store.FileName + ".new-wal", store.FileName + ".new-shm", "store.lock"},
	} {
		dir := t.TempDir()
		for _, name := range leftovers {
			if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		db := open(t, dir)
		if err := db.PutEra(t.Context(), "image", "modern"); err != nil {
			t.Errorf("after %v were left: PutEra = %v", leftovers, err)
		}
		if _, err := os.Stat(filepath.Join(dir, store.FileName+".new")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("after %v were left: the unfinished database is still there (%v)", leftovers, err)
		}
	}
}
