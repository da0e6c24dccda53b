package setup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io/fs"
	"sync"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/catalog/source"
)

// Parsed are catalogs that were parsed before, by their origin. A file
// with the same content is not parsed again: that is most of the time of a
// reload. The zero value is ready.
type Parsed struct {
	mu   sync.Mutex
	each map[catalog.Origin]parsedFile
}

type parsedFile struct {
	sum  [sha256.Size]byte
	file catalog.File
}

// parse reads a catalog in whichever format it is, by what was parsed before
// if it can. A nil Parsed keeps nothing.
func (p *Parsed) parse(ctx context.Context, origin catalog.Origin, data []byte, around catalog.Surroundings) (catalog.File, error) {
	if p == nil {
		return source.Parse(ctx, origin, data, around)
	}
	sum := sha256.Sum256(data)
	p.mu.Lock()
	kept, ok := p.each[origin]
	p.mu.Unlock()
	if ok && kept.sum == sum {
		return kept.file, nil
	}
	var a asked
	file, err := source.Parse(ctx, origin, data, a.around(around))
	if err != nil {
		return file, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.each, origin)
	// A Compose file may be made of others, and so may what depends on its
	// surroundings.
	if !a.something && !bytes.Contains(data, []byte("services")) {
		if p.each == nil {
			p.each = make(map[catalog.Origin]parsedFile)
		}
		p.each[origin] = parsedFile{sum, file}
	}
	return file, nil
}

// asked is whether a parser has asked its surroundings anything.
type asked struct{ something bool }

func (a *asked) around(s catalog.Surroundings) catalog.Surroundings {
	env, stat, known := s.Env, s.Stat, s.Known
	if env != nil {
		s.Env = func(name string) (string, bool) { a.something = true; return env(name) }
	}
	if stat != nil {
		s.Stat = func(path string) (fs.FileInfo, error) { a.something = true; return stat(path) }
	}
	if known != nil {
		s.Known = func(name string) (catalog.Server, bool) { a.something = true; return known(name) }
	}
	return s
}
