package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dockgate/dockgate/internal/inventory"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/setup"
	"github.com/dockgate/dockgate/internal/store"
)

// ErrFixed says that a Daemon was opened without a way to read its
// configuration again.
var ErrFixed = errors.New("the configuration cannot be read again")

// A Reloaded is what a reload has come to.
type Reloaded struct {
	// Took is from the reading of the files until every list is another one.
	Took time.Duration
	// Restart are the keys whose new values hold after a restart only.
	Restart []string
}

// Reload reads the configuration and the catalogs again and takes what they
// come to in place of what held before. Calls under way go on as they began.
// If there is a mistake anywhere, all of it is as it was, and the error says
// what.
func (d *Daemon) Reload(ctx context.Context) (Reloaded, error) {
	if d.Load == nil {
		return Reloaded{}, ErrFixed
	}
	d.reloading.Lock()
	defer d.reloading.Unlock()
	began := time.Now()
	in := d.Inputs
	in.Again = true
	var err error
	if in.Config, err = d.Load(); err != nil {
		return Reloaded{}, err
	}
	next, err := setup.Read(ctx, in, &d.parsed)
	if err != nil {
		return Reloaded{}, err
	}
	d.now.Store(next)
	d.Planner.ForgetAll()
	d.Gateway.Changed(ctx)
	return Reloaded{Took: time.Since(began), Restart: restarts(d.started, next)}, nil
}

// reloadable are the parts of a configuration that hold as soon as they are
// reloaded. All others hold from the start of a gateway to its end.
func reloadable() []string {
	return []string{"catalogs", "expose", "limits", "timeouts", "quotas", "roles", "discovery.enabled", "discovery.sources", "discovery.servers", "discovery.toolRules"}
}

// restarts returns the keys, sorted, that are other ones in next and cannot be
// taken over while a gateway runs.
func restarts(started, next *setup.Setup) []string {
	values := func(s *setup.Setup) map[string]any {
		all := map[string]any{}
		for _, one := range s.Settings() {
			all[one.Key] = one.Value
		}
		all["access"], all["install.env"] = s.Config.Admission.Issuers, s.Config.Install.Env
		return all
	}
	before, after := values(started), values(next)
	var keys []string
	for _, one := range slices.Concat(started.Settings(), next.Settings()) {
		part := func(name string) bool { return one.Key == name || strings.HasPrefix(one.Key, name+".") }
		if !slices.ContainsFunc(reloadable(), part) && !reflect.DeepEqual(before[one.Key], after[one.Key]) {
			keys = append(keys, one.Key)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

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

const (
	presences = "gateway/"
	wishFact  = "reload"
	// presenceEvery is how often a gateway says that it runs; one that has not
	// for presenceLife does no more.
	presenceEvery = 5 * time.Second
	presenceLife  = 3 * presenceEvery
)

// A wish asks all gateways of a state folder to reload.
type wish struct {
	Asked string `json:"asked"`
	// Flushed is the last wish with which something was flushed.
	Flushed string `json:"flushed"`
}

// Gateways returns the gateways of a state folder that run, and drops what
// is left of others.
func Gateways(ctx context.Context, db *store.DB) ([]Presence, error) {
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
		if time.Since(p.Seen) > presenceLife {
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

// AskReload asks every gateway of the state folder to reload, and returns what
// the wish is called: a gateway that has met it says so in its [Presence].
func (d *Daemon) AskReload(ctx context.Context) (string, error) {
	return d.ask(ctx, func(w *wish) { w.Asked = newWish() })
}

// Flush drops what is kept of what a server offered, of all servers if it is
// empty, and asks every gateway to reload. What was approved stays, and so does
// what a server offers that runs.
func (d *Daemon) Flush(ctx context.Context, server string) (string, error) {
	spec := ""
	if server != "" {
		made, err := d.Planner.Plan(ctx, principal.Local, server)
		if err != nil {
			return "", err
		}
		spec = made.Digest
	}
	if err := d.Store.FlushOffers(ctx, spec); err != nil {
		return "", err
	}
	return d.ask(ctx, func(w *wish) { w.Asked = newWish(); w.Flushed = w.Asked })
}

func newWish() string { return strconv.FormatInt(time.Now().UnixNano(), 36) }

func (d *Daemon) ask(ctx context.Context, change func(*wish)) (string, error) {
	var w wish
	if err := d.Store.Fact(ctx, wishFact, &w); err != nil {
		return "", err
	}
	change(&w)
	return w.Asked, d.Store.SetFact(ctx, wishFact, w)
}

// Uses is how often gateways of the state folder were asked what servers
// offer.
func (d *Daemon) Uses(ctx context.Context) (inventory.Uses, error) { return d.Store.Uses(ctx) }
