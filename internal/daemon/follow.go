package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/dockgate/dockgate/internal/call"
	"github.com/dockgate/dockgate/internal/inventory"
	"github.com/dockgate/dockgate/internal/presence"
	"github.com/dockgate/dockgate/internal/principal"
)

const (
	// quiet is how long after a file has changed nothing more must, until it is
	// read: editors and copies write in several steps.
	quiet = 50 * time.Millisecond
	// lookEvery is how soon a change is seen where the system does not tell of
	// it, as on some shared folders.
	lookEvery = 2 * time.Second
)

// A follower reloads a Daemon whenever something that it was made of changes,
// or another process asks for it, and says in the state folder that it runs.
type follower struct {
	*Daemon
	files    *fsnotify.Watcher // nil if the system has none
	watched  map[string]bool
	seen     string // the files, when they were read last
	wish     presence.Wish
	presence presence.Presence
	told     time.Time // when the presence was written last
	read     time.Time // when the files were
	renewed  map[string]time.Time
}

// follow follows until ctx ends.
func (d *Daemon) follow(ctx context.Context) (err error) {
	f := &follower{Daemon: d, watched: map[string]bool{}, renewed: map[string]time.Time{}, read: time.Now(), seen: d.filesNow()}
	f.presence = presence.New(os.Getpid())
	f.wish, err = presence.LastWish(ctx, d.Store)
	switch {
	case ctx.Err() != nil: // the client has left before anything happened
		return nil
	case err != nil:
		return err
	}
	f.presence.Asked = f.wish.Asked
	if f.files, err = fsnotify.NewWatcher(); err != nil {
		d.Logger.WarnContext(ctx, "files are looked at from time to time only", "err", err)
	} else {
		defer func() { err = errors.Join(err, f.files.Close()) }()
	}
	f.watch()
	f.tell(ctx)
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), presence.Every)
		defer cancel()
		err = errors.Join(err, f.addUses(ctx), f.presence.End(ctx, d.Store))
	}()
	return f.run(ctx)
}

func (f *follower) run(ctx context.Context) error {
	tick, look := time.NewTicker(watchEvery), time.NewTicker(lookEvery)
	defer tick.Stop()
	defer look.Stop()
	var changed <-chan fsnotify.Event
	var failed <-chan error
	if f.files != nil {
		changed, failed = f.files.Events, f.files.Errors
	}
	var settled <-chan time.Time // when what changes has been still for a moment
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
			settled = time.After(quiet)
		case err := <-failed:
			f.Logger.DebugContext(ctx, "watch files", "err", err)
		case <-settled:
			settled = nil
			f.reloadIfChanged(ctx)
		case <-look.C:
			f.reloadIfChanged(ctx)
			f.renew(ctx)
		case <-tick.C:
			f.reloadIfAsked(ctx)
			if time.Since(f.told) >= presence.Every {
				f.tell(ctx)
			}
		}
	}
}

// reloadIfChanged reloads if a file is another one than when it was read, or
// was read too long ago to be sure.
func (f *follower) reloadIfChanged(ctx context.Context) {
	if now := f.filesNow(); now != f.seen || time.Since(f.read) >= f.Now().Cache().Life() {
		f.reload(ctx)
	}
}

// reloadIfAsked reloads if another process asks for it.
func (f *follower) reloadIfAsked(ctx context.Context) {
	w, err := presence.LastWish(ctx, f.Store)
	if err != nil {
		f.Logger.ErrorContext(ctx, "read wish for a reload", "err", err)
		return
	}
	if w == f.wish {
		return
	}
	flushed := w.Flushed != f.wish.Flushed
	f.wish, f.presence.Asked = w, w.Asked
	if flushed {
		running := f.Fleet.Digests()
		if err := f.Caller.Offers.Forget(ctx, func(key inventory.Key) bool { return running[key.Spec] }); err != nil {
			f.Logger.ErrorContext(ctx, "flush what servers offered", "err", err)
		}
	}
	f.reload(ctx)
}

// reload reloads, and says how that went.
func (f *follower) reload(ctx context.Context) {
	f.seen, f.read = f.filesNow(), time.Now()
	done, err := f.Reload(ctx)
	if errors.Is(err, ErrFixed) {
		f.tell(ctx)
		return
	}
	if err == nil {
		f.presence.Problem, f.presence.Restart, f.presence.Took = "", done.Restart, float64(done.Took.Microseconds())/1000
	} else {
		f.presence.Problem = err.Error()
	}
	f.watch()
	f.tell(ctx)
	if err != nil {
		f.Logger.ErrorContext(ctx, "configuration not reloaded, the earlier one holds", "err", err)
		return
	}
	f.Logger.InfoContext(ctx, "configuration reloaded", "duration", done.Took)
	if len(done.Restart) > 0 {
		f.Logger.WarnContext(ctx, "some settings hold after a restart only", "keys", strings.Join(done.Restart, ", "))
	}
}

// tell says in the state folder that the gateway runs.
func (f *follower) tell(ctx context.Context) {
	f.told = time.Now()
	err := f.presence.Tell(ctx, f.Store)
	if err = errors.Join(err, f.addUses(ctx)); err != nil && ctx.Err() == nil {
		f.Logger.ErrorContext(ctx, "say that the gateway runs", "err", err)
	}
}

// addUses adds what was asked since to what all gateways were asked.
func (f *follower) addUses(ctx context.Context) error {
	uses := f.Caller.Offers.Take()
	if uses == (inventory.Uses{}) {
		return nil
	}
	return f.Store.AddUses(ctx, uses)
}

// watch watches the folders of all files: a file that is replaced is another
// one, and one that is not there yet cannot be watched.
func (f *follower) watch() {
	if f.files == nil {
		return
	}
	for _, file := range f.sourcesOf() {
		folder := filepath.Dir(file)
		for _, path := range []string{folder, file} {
			if info, err := os.Stat(path); err != nil || !info.IsDir() || f.watched[path] {
				continue
			}
			if err := f.files.Add(path); err == nil { // else it is looked at from time to time
				f.watched[path] = true
			}
		}
	}
}

// sourcesOf are the files and folders that the Daemon is made of, whether they
// are there or not.
func (d *Daemon) sourcesOf() []string {
	now := d.Now()
	files := d.ProjectFiles()
	for _, file := range []string{d.ConfigFile, now.Config.File, d.OwnCatalog} {
		if file != "" {
			files = append(files, file)
		}
	}
	for _, place := range now.Places {
		if file := place.File(); file != "" {
			files = append(files, file)
		}
	}
	slices.Sort(files)
	return slices.Compact(files)
}

// filesNow tells whether any of the files has changed. Of a folder it has what is
// in it, and what is in the folders of that.
func (d *Daemon) filesNow() string {
	var b strings.Builder
	var add func(path string, depth int)
	add = func(path string, depth int) {
		info, err := os.Stat(path)
		if err != nil {
			return
		}
		fmt.Fprintf(&b, "%s %d %d\n", path, info.Size(), info.ModTime().UnixNano())
		if !info.IsDir() || depth == 0 {
			return
		}
		entries, err := os.ReadDir(path)
		if err != nil {
			return
		}
		for _, entry := range entries {
			add(filepath.Join(path, entry.Name()), depth-1)
		}
	}
	for _, file := range d.sourcesOf() {
		add(file, 2)
	}
	return b.String()
}

// renew asks remote servers again what they offer, when they were asked too
// long ago. Others say so by themselves, or are another program.
func (f *follower) renew(ctx context.Context) {
	life := f.Now().Cache().Life()
	names, err := f.Desk.Enabled(ctx, principal.Local)
	if err != nil {
		return // said by who needs it
	}
	for _, name := range names {
		entry, err := f.Catalog().Server(name)
		if err != nil || entry.Remote == nil || time.Since(f.renewed[name]) < life {
			continue
		}
		made, err := f.Planner.Plan(ctx, principal.Local, name)
		if err != nil || !f.Caller.Approved(made) {
			continue
		}
		f.renewed[name] = time.Now()
		if at, err := f.Caller.Renewed(ctx, made); err == nil && !at.IsZero() && time.Since(at) >= life {
			f.Caller.Warm(ctx, call.Client{Principal: principal.Local}, name)
		}
	}
}
