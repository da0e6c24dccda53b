package store_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dockgate/dockgate/internal/store"
)

// A disk that fills up: what was promised is there, the error says what to
// do, and with space again all goes on.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=2m"); err != nil {
		t.Skipf("needs the right to mount a small disk: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	filler := filepath.Join(dir, "filler")
	if err := os.WriteFile(filler, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	value := strings.Repeat("x", 10_000)
	promised := 0
	for ; err == nil; promised++ {
		err = db.PutEra(t.Context(), fmt.Sprintf("image%d", promised), value)
	}
	promised--
	if promised == 0 {
		t.Fatal("nothing could be written at all")
	}
	var fault *store.Error
	if !errors.As(err, &fault) || !strings.Contains(fault.Hint(), "full") {
		t.Errorf("PutEra on a full disk = %v, want an error with a hint that it is full", err)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if err := db.PutEra(t.Context(), "after", "modern"); err != nil {
		t.Errorf("PutEra with space again = %v, want nil", err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	again := open(t, dir)
	if err := again.Verify(t.Context()); err != nil {
		t.Errorf("Verify = %v, want nil", err)
	}
	eras, err := again.Eras(t.Context())
	if err != nil || len(eras) != promised+1 {
		t.Errorf("Eras = %d, %v, want %d", len(eras), err, promised+1)
	}
}

// A full disk at the first start leaves no half-made database.
func TestFullDiskAtFirst(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("needs the right to mount a small disk: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	_, err := store.Open(t.Context(), dir)
	var fault *store.Error
	if !errors.As(err, &fault) || !strings.Contains(fault.Hint(), "full") {
		t.Fatalf("Open on a full disk = %v, want an error with a hint that it is full", err)
	}
	if _, err := os.Stat(filepath.Join(dir, store.FileName)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Stat of the database = %v, want none", err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=4m"); err != nil {
		t.Fatal(err)
	}
	open(t, dir)
}

func TestReadOnlyDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
		t.Skipf("needs the right to mount a disk: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	remount := func(flags uintptr) {
		t.Helper()
		if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT|flags, "size=4m"); err != nil {
			t.Fatal(err)
		}
	}
	for _, when := range []string{"without a database", "with a database"} {
		remount(syscall.MS_RDONLY)
		for _, at := range []string{dir, filepath.Join(dir, "state")} {
			db, err := store.Open(t.Context(), at)
			if err == nil {
				err = db.PutEra(t.Context(), "image", "modern")
				if closing := db.Close(); closing != nil {
					t.Error(closing)
				}
			}
			var fault *store.Error
			if !errors.As(err, &fault) || !strings.Contains(fault.Hint(), "writable") {
				t.Errorf("%s: writing to a read-only disk = %v, want an error with a hint to make it writable", when, err)
			}
		}
		remount(0)
		db, err := store.Open(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := db.PutEra(t.Context(), "image", "modern"); err != nil {
			t.Errorf("%s: PutEra when it is writable again = %v", when, err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}
