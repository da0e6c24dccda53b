package official

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// mostKept is how many answers are kept, in memory and in the folder.
const mostKept = 256

// An answer is what the registry said, and when.
type answer struct {
	Address string          `json:"address"`
	At      time.Time       `json:"at"`
	Body    json.RawMessage `json:"body"`
}

// recall returns what was kept of an address.
func (g *Registry) recall(address string) (answer, bool) {
	g.mu.Lock()
	old, known := g.kept[address]
	g.mu.Unlock()
	if known || g.Folder == "" {
		return old, known
	}
	data, err := os.ReadFile(g.file(address))
	if err != nil || json.Unmarshal(data, &old) != nil || old.Address != address {
		return answer{}, false
	}
	if old.At.After(time.Now()) { // by a clock that was wrong
		old.At = time.Time{}
	}
	return old, true
}

// keep keeps an answer. What cannot be kept is asked for again, so nothing is
// made of an error.
func (g *Registry) keep(a answer) {
	g.mu.Lock()
	if g.kept == nil || len(g.kept) >= mostKept {
		g.kept = make(map[string]answer)
	}
	g.kept[a.Address] = a
	g.mu.Unlock()
	if g.Folder != "" {
		_ = g.write(a)
	}
}

func (g *Registry) file(address string) string {
	sum := sha256.Sum256([]byte(address))
	return filepath.Join(g.Folder, hex.EncodeToString(sum[:16])+".json")
}

// write replaces the file of an answer as a whole, and drops the oldest files
// if there are too many.
func (g *Registry) write(a answer) error {
	data, err := json.Marshal(a)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(g.Folder, 0o700); err != nil {
		return err
	}
	made, err := os.CreateTemp(g.Folder, "answer-*")
	if err != nil {
		return err
	}
	_, err = made.Write(data)
	if err = errors.Join(err, made.Close()); err == nil {
		err = os.Rename(made.Name(), g.file(a.Address))
	}
	if err != nil {
		return errors.Join(err, os.Remove(made.Name()))
	}
	return g.trim()
}

func (g *Registry) trim() error {
	entries, err := os.ReadDir(g.Folder)
	if err != nil || len(entries) <= mostKept {
		return err
	}
	type file struct {
		name string
		at   time.Time
	}
	var files []file
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() { // else another process has dropped it
			files = append(files, file{entry.Name(), info.ModTime()})
		}
	}
	slices.SortFunc(files, func(a, b file) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.name, b.name)) })
	for _, old := range files[:max(0, len(files)-mostKept)] {
		err = errors.Join(err, os.Remove(filepath.Join(g.Folder, old.name)))
	}
	return err
}
