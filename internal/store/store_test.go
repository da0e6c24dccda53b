package store_test

import (
	"testing"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/approval/approvaltest"
	"github.com/dockgate/dockgate/internal/store"
)

func open(t *testing.T, dir string) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), dir)
	if err != nil {
		t.Fatalf("Open = %v", err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
	})
	return db
}

func TestApprovals(t *testing.T) { approvaltest.Run(t, openTwice) }

func TestDesk(t *testing.T) { approvaltest.RunDesk(t, openTwice) }

func openTwice(t *testing.T) (one, two approval.Store) {
	dir := t.TempDir()
	return open(t, dir), open(t, dir)
}
