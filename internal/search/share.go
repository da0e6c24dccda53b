package search

import (
	"hash/maphash"
	"maps"
	"slices"
)

// A table is a map in parts. A change of it copies the parts that it writes to,
// and shares the others with the table that was before.
type table[K comparable, V any] struct {
	parts []map[K]V
}

// seed spreads the keys. It decides where they lie and nothing that is seen.
var seed = maphash.MakeSeed() //nolint:gochecknoglobals // it never changes

func newTable[K comparable, V any](parts int) table[K, V] {
	return table[K, V]{make([]map[K]V, parts)}
}

func (t table[K, V]) part(key K) int {
	return int(maphash.Comparable(seed, key) % uint64(len(t.parts))) //nolint:gosec // below len
}

func (t table[K, V]) get(key K) (V, bool) {
	value, ok := t.parts[t.part(key)][key]
	return value, ok
}

// A tableChange is the next table.
type tableChange[K comparable, V any] struct {
	table[K, V]
	// own are the parts that it has copied.
	own []bool
}

func changeTable[K comparable, V any](t table[K, V]) tableChange[K, V] {
	return tableChange[K, V]{table[K, V]{slices.Clone(t.parts)}, make([]bool, len(t.parts))}
}

// writable returns the part of a key.
func (t tableChange[K, V]) writable(key K) map[K]V {
	i := t.part(key)
	if !t.own[i] {
		t.own[i] = true
		if t.parts[i] = maps.Clone(t.parts[i]); t.parts[i] == nil {
			t.parts[i] = make(map[K]V)
		}
	}
	return t.parts[i]
}

func (t tableChange[K, V]) put(key K, value V) { t.writable(key)[key] = value }
func (t tableChange[K, V]) remove(key K)       { delete(t.writable(key), key) }

// pageLength is how many values a page has.
const pageLength = 32

// Pages are a slice in parts, as a table is a map.
type pages[V any] struct {
	all    []*[pageLength]V
	length int
}

func (p pages[V]) at(i int32) V { return p.all[i/pageLength][i%pageLength] }

// A pagesChange is the next pages.
type pagesChange[V any] struct {
	pages[V]
	own []bool
}

func changePages[V any](p pages[V]) pagesChange[V] {
	return pagesChange[V]{pages[V]{slices.Clone(p.all), p.length}, make([]bool, len(p.all))}
}

func (p *pagesChange[V]) set(i int32, value V) {
	page := i / pageLength
	if !p.own[page] {
		p.own[page] = true
		written := *p.all[page]
		p.all[page] = &written
	}
	p.all[page][i%pageLength] = value
}

// add returns the place of a new value.
func (p *pagesChange[V]) add(value V) int32 {
	i := int32(p.length) //nolint:gosec // values in memory
	if p.length++; p.length > len(p.all)*pageLength {
		p.all, p.own = append(p.all, new([pageLength]V)), append(p.own, true)
	}
	p.set(i, value)
	return i
}
