package presence_test

import (
	"testing"
	"time"

	"github.com/dockgate/dockgate/internal/presence"
	"github.com/dockgate/dockgate/internal/store"
)

func open(t *testing.T) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func running(t *testing.T, db *store.DB) []string {
	t.Helper()
	found, err := presence.Running(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	ids := []string{}
	for _, p := range found {
		ids = append(ids, p.ID)
	}
	return ids
}

// Who has not said for long that it runs is dropped for good.
func TestRunning(t *testing.T) {
	db, here := open(t), presence.New(1)
	if got := running(t, db); len(got) != 0 {
		t.Errorf("Running() = %q before anybody said so, want none", got)
	}
	gone := presence.Presence{ID: "gone", Seen: time.Now().Add(-time.Hour)}
	if err := db.SetFact(t.Context(), "gateway/gone", gone); err != nil {
		t.Fatal(err)
	}
	if err := here.Tell(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	if got := running(t, db); len(got) != 1 || got[0] != here.ID {
		t.Errorf("Running() = %q, want %s alone", got, here.ID)
	}
	if facts, err := db.Facts(t.Context(), "gateway/"); err != nil || len(facts) != 1 {
		t.Errorf("kept %v, %v, want what is gone dropped", facts, err)
	}
	if err := here.End(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	if got := running(t, db); len(got) != 0 {
		t.Errorf("Running() = %q after the end, want none", got)
	}
}

// A later wish to reload keeps what an earlier one said of flushing.
func TestWish(t *testing.T) {
	db := open(t)
	if got, err := presence.LastWish(t.Context(), db); err != nil || got != (presence.Wish{}) {
		t.Errorf("LastWish() = %+v, %v before the first, want none", got, err)
	}
	flush, err := presence.AskFlush(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := presence.LastWish(t.Context(), db); err != nil || got != (presence.Wish{Asked: flush, Flushed: flush}) {
		t.Errorf("LastWish() = %+v, %v, want %s for both", got, err, flush)
	}
	reload, err := presence.AskReload(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := presence.LastWish(t.Context(), db); err != nil || got != (presence.Wish{Asked: reload, Flushed: flush}) {
		t.Errorf("LastWish() = %+v, %v, want %s, flushed with %s", got, err, reload, flush)
	}
}
