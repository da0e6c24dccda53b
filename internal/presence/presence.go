// Package presence is how the gateways of one state folder and the command line
// meet: each gateway says in the store that it runs and how it is, and whoever
// wants all of them to reload leaves a [Wish] there.
//
// It decides who runs: whoever has not said so for a while does no more, and is
// dropped. A wish is met when the presence of each gateway names it.
package presence

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dockgate/dockgate/internal/store"
)

const (
	// Every is how often a gateway says that it runs; one that has not for life
	// does no more.
	Every = 5 * time.Second
	life  = 3 * Every

	presences = "gateway/"
	wishFact  = "reload"
)

// A Presence is what a gateway that runs says of itself in its state folder.
type Presence struct {
	// ID is the gateway's own.
	ID string `json:"id"`
	// Seen is when it said so last.
	Seen time.Time `json:"seen"`
	// Asked is the last wish for a reload that it has met.
	Asked string `json:"asked"`
	// Took is how long its last reload took, in milliseconds.
	Took float64 `json:"took_ms"`
	// Problem is why it goes on with an earlier configuration; empty if it does
	// not.
	Problem string `json:"problem,omitempty"`
	// Restart are the keys whose values hold after its restart only.
	Restart []string `json:"restart,omitempty"`
}

// New returns the presence of a gateway of this process, which nobody sees yet.
func New(pid int) Presence { return Presence{ID: fmt.Sprintf("%d-%s", pid, unique())} }

// Tell says in the state folder that the gateway runs.
func (p *Presence) Tell(ctx context.Context, db *store.DB) error {
	p.Seen = time.Now().UTC()
	return db.SetFact(ctx, presences+p.ID, p)
}

// End says that it does no more.
func (p *Presence) End(ctx context.Context, db *store.DB) error {
	return db.DeleteFact(ctx, presences+p.ID)
}

// Running returns the gateways of a state folder that run, by their id, and
// drops what is left of others.
func Running(ctx context.Context, db *store.DB) ([]Presence, error) {
	facts, err := db.Facts(ctx, presences)
	if err != nil {
		return nil, err
	}
	var all []Presence
	for name, value := range facts {
		var p Presence
		if err := json.Unmarshal(value, &p); err != nil {
			return nil, fmt.Errorf("gateway %s: %w", name, err)
		}
		if time.Since(p.Seen) > life {
			if err := db.DeleteFact(ctx, name); err != nil {
				return nil, err
			}
			continue
		}
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b Presence) int { return strings.Compare(a.ID, b.ID) })
	return all, nil
}

// A Wish asks all gateways of a state folder to reload.
type Wish struct {
	Asked string `json:"asked"`
	// Flushed is the last wish with which something was flushed.
	Flushed string `json:"flushed"`
}

// LastWish returns the newest wish; the zero Wish if there was none.
func LastWish(ctx context.Context, db *store.DB) (w Wish, err error) {
	err = db.Fact(ctx, wishFact, &w)
	return w, err
}

// AskReload asks every gateway of a state folder to reload, and returns what
// the wish is called: a gateway that has met it says so in its [Presence].
func AskReload(ctx context.Context, db *store.DB) (string, error) {
	w, err := LastWish(ctx, db)
	if err != nil {
		return "", err
	}
	w.Asked = unique()
	return w.Asked, db.SetFact(ctx, wishFact, w)
}

// AskFlush is [AskReload] after what servers offered was flushed.
func AskFlush(ctx context.Context, db *store.DB) (string, error) {
	name := unique()
	return name, db.SetFact(ctx, wishFact, Wish{Asked: name, Flushed: name})
}

func unique() string { return strconv.FormatInt(time.Now().UnixNano(), 36) }
