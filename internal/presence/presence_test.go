package presence_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
	db := open(t)
	for id, seen := range map[string]time.Time{
		"gone": time.Now().Add(-time.Hour), "b": time.Now().Add(time.Hour), "a": time.Now().Add(time.Hour),
	} {
		if err := db.SetFact(t.Context(), "gateway/"+id, presence.Presence{ID: id, Seen: seen}); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"a", "b"}, running(t, db)); diff != "" {
		t.Errorf("Running() (-want +got):\n%s", diff)
	}
	if facts, err := db.Facts(t.Context(), "gateway/"); err != nil || len(facts) != 2 {
		t.Errorf("kept %v, %v, want what is gone dropped", facts, err)
	}
}

// What is told is there for others to read until its end.
func TestTell(t *testing.T) {
	db, here := open(t), presence.New(1)
	kept := func() int {
		facts, err := db.Facts(t.Context(), "gateway/")
		if err != nil {
			t.Fatal(err)
		}
		return len(facts)
	}
	if err := here.Tell(t.Context(), db); err != nil || kept() != 1 || here.Seen.IsZero() {
		t.Errorf("Tell() = %v, with %d presences, seen %v, want one that was seen", err, kept(), here.Seen)
	}
	if err := here.End(t.Context(), db); err != nil || kept() != 0 {
		t.Errorf("End() = %v, with %d presences, want none", err, kept())
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
