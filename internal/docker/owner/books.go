// Package owner knows whose each object on an engine is.
//
// It decides by labels, which name the state folder and the gateway that has
// made an object, and by a lock that each gateway holds for as long as it lives
// and takes before it makes anything. What a gateway of this state folder has
// left is removed by a sweep of any other one, and what one of another state
// folder has left once it has expired, because that one's lock cannot be seen.
// It refuses to stop or to measure what is not of this state folder, and never
// removes what may have a living owner, unless a person says so.
package owner

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"sync"
	"time"

	"github.com/dockgate/dockgate/internal/docker/reach"
	"github.com/dockgate/dockgate/internal/sandbox"
)

// The labels of everything that gateways make.
const (
	labelState   = "dockgate.state"   // the state folder
	labelServer  = "dockgate.server"  // the catalog's name
	labelExpires = "dockgate.expires" // when anybody may remove it, RFC 3339
	labelRole    = "dockgate.role"    // what it is, if it is no server's
)

// Label is the label with the gateway's id, which everything carries that
// gateways make.
const Label = "dockgate.owner"

// roleGateway is the role of the container of a gateway that clients share.
const roleGateway = "gateway"

// Options say which engine to use and what the gateway calls its own there.
type Options struct {
	reach.Options
	// State identifies the state folder; containers carry it as a label.
	State string
	// Dir is the state folder; locks and log files are kept in it.
	Dir string
	// Logger is told of what is swept and of what the engine warns of. Nil
	// discards it.
	Logger *slog.Logger
}

// Books are what one gateway knows of its own objects on an engine, and the
// way to that engine. Whatever makes something there does so between
// [Books.Begin] and the end of it, with labels from here; all methods may be
// called from any goroutine.
type Books struct {
	*reach.Conn
	Logger *slog.Logger

	state, dir string

	mu sync.Mutex
	// closed books begin nothing.
	closed bool
	lease  *Lease // nil until the first Begin
	// live has everything that was entered and not struck, by its id.
	live map[string]bool
	// begun and ended count what was begun, so that a sweep knows whether a
	// container that is not in live may still get there.
	begun, ended int
	beginning    sync.WaitGroup
}

// Open returns the books of a gateway on the engine that the options name. It
// makes no connection and takes no lock. Whoever opens them closes the API.
func Open(o Options) (*Books, error) {
	if o.State == "" || o.Dir == "" {
		return nil, errors.New("connect to the engine: no state folder given")
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("connect to the engine: state folder: %w", err)
	}
	conn, err := reach.Connect(o.Options)
	if err != nil {
		return nil, err
	}
	log := o.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Books{Conn: conn, Logger: log, state: o.State, dir: dir, live: make(map[string]bool)}, nil
}

// Dir is the state folder, as an absolute path.
func (b *Books) Dir() string { return b.dir }

// Objects returns what the books are the key to.
func (b *Books) Objects() *Objects { return &Objects{books: b} }

// Begin takes the lock of this gateway, if it is not yet taken, and holds back
// End until the returned function is called.
func (b *Books) Begin() (owner string, end func(), err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return "", nil, errors.New("the engine's connection is closed")
	}
	if b.lease == nil {
		lease, err := takeLease(b.dir, alone)
		if err != nil {
			return "", nil, err
		}
		b.lease = lease
	}
	b.begun++
	b.beginning.Add(1)
	return b.lease.Owner, func() {
		b.mu.Lock()
		b.ended++
		b.mu.Unlock()
		b.beginning.Done()
	}, nil
}

// End lets nothing begin any more, and waits for what has begun.
func (b *Books) End() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.beginning.Wait()
}

// Release gives up the lock. What this gateway still has is removed by the
// sweep of another.
func (b *Books) Release() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lease == nil {
		return nil
	}
	return b.lease.Release()
}

// Enter notes a container that is about to be started, or what runs in one of
// the user's. Sweeps spare it.
func (b *Books) Enter(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.live[id] = true
}

// Strike takes out of the books what Enter has noted: it is removed or, if that
// has failed, for a sweep.
func (b *Books) Strike(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.live, id)
}

// A page is what the books say at one time.
type page struct {
	owner        string // "" before the first Begin
	begun, ended int
	live         map[string]bool
}

func (b *Books) page() page {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := page{begun: b.begun, ended: b.ended, live: maps.Clone(b.live)}
	if b.lease != nil {
		p.owner = b.lease.Owner
	}
	return p
}

// stray reports whether a container of this gateway, listed by the engine
// between two looks at the books, is one that a failed removal has left: while
// nothing was begun, those that are not live are.
func stray(id string, before, after page) bool {
	quiet := before.begun == before.ended && before.begun == after.begun
	return quiet && !before.live[id] && !after.live[id]
}

// Labels are what an object of the server carries, from now on.
func (b *Books) Labels(owner, server string) map[string]string {
	return map[string]string{
		labelState:   b.state,
		Label:        owner,
		labelServer:  server,
		labelExpires: time.Now().Add(sandbox.Lifetime).UTC().Format(time.RFC3339),
	}
}

// GatewayLabels are what the container of a shared gateway carries.
func (b *Books) GatewayLabels(owner string) map[string]string {
	labels := b.Labels(owner, "")
	delete(labels, labelServer)
	labels[labelRole] = roleGateway
	return labels
}
