package daemon

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/dockgate/dockgate/internal/inventory"
	"github.com/dockgate/dockgate/internal/presence"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/setup"
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
	return []string{
		"catalogs", "expose", "limits", "timeouts", "quotas", "roles", "access.default_role", "access.local_role",
		"discovery.enabled", "discovery.cache.ttl", "discovery.sources", "discovery.servers", "discovery.toolRules",
	}
}

// restarts returns the keys, sorted, that are other ones in next and cannot be
// taken over while a gateway runs.
func restarts(started, next *setup.Setup) []string {
	values := func(s *setup.Setup) map[string]any {
		all := map[string]any{}
		for _, one := range s.Settings() {
			all[one.Key] = one.Value
		}
		all["access.issuers"], all["install.env"] = s.Config.Admission.Issuers, s.Config.Install.Env
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
	return presence.AskFlush(ctx, d.Store)
}

// Uses is how often gateways of the state folder were asked what servers
// offer.
func (d *Daemon) Uses(ctx context.Context) (inventory.Uses, error) { return d.Store.Uses(ctx) }
