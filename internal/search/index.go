// Package search ranks documents, such as servers and their tools, for a query
// in words.
//
// It finds by words, not by meaning: fields count by their weight (BM25F),
// identifiers are split into their words, words are reduced to their stems, and
// a word that no document has stands for those that begin with it or are a
// typing mistake away. The same index and query give the same hits in the same
// order. An index cannot be changed; to add a document, build another.
package search

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// A Document is what can be found. Its fields are listed by falling weight.
type Document struct {
	// ID is unique within an index.
	ID string
	// Name is what people call it. A query that is the Name or the ID, whatever
	// its case and separators, scores 1.
	Name     string
	Keywords []string
	Title    string
	Tags     []string
	// Tools are the names of what it contains.
	Tools       []string
	Description string
	// Text is anything else, such as the descriptions of its tools.
	Text []string
}

// A Hit is a document that was found.
type Hit struct {
	ID string
	// Score is over 0 and at most 1: the share of what the query asks for that
	// the document has. Only a query that is the document's name scores 1.
	Score float64
}

// field is a part of a document with its weight, and how much of the weight a
// long text loses against an average one (BM25's b).
type field struct {
	weight, norm float64
	texts        func(*Document) []string
}

func fields() []field {
	one := func(text func(*Document) string) func(*Document) []string {
		return func(d *Document) []string { return []string{text(d)} }
	}
	return []field{
		{8, 0.3, one(func(d *Document) string { return d.Name })},
		{5, 0.3, func(d *Document) []string { return d.Keywords }},
		{4, 0.3, one(func(d *Document) string { return d.Title })},
		{3, 0.3, func(d *Document) []string { return d.Tags }},
		{2, 0.6, func(d *Document) []string { return d.Tools }},
		{2, 0.6, one(func(d *Document) string { return d.Description })},
		{1, 0.8, func(d *Document) []string { return d.Text }},
	}
}

// saturation is BM25's k1, in units of the weights above: a document with this
// much of a word has half of what can be had.
const saturation = 3

// A posting is a document that has a term.
type posting struct {
	document int32
	// share is how much of the term the document has, below 1.
	share float32
}

// An Index finds documents. It is safe for concurrent use.
type Index struct {
	ids []string
	// names maps folded names and IDs to documents.
	names map[string][]int32
	// terms maps stems to the documents that have them, in their order.
	terms map[string][]posting
	// words are all words before they were stemmed, sorted, for the words of a
	// query that are no term.
	words []string
	// byLength are the same by their number of letters.
	byLength map[int][]string
}

// Build returns an index of documents.
func Build(documents []Document) *Index {
	x := &Index{
		ids:   make([]string, len(documents)),
		names: make(map[string][]int32),
		terms: make(map[string][]posting),

		byLength: make(map[int][]string),
	}
	stems := make(map[string]string)
	all := fields()
	// counts[f][d] are the terms of a document's field, and lengths[f][d] how
	// many there are.
	counts := make([][]map[string]int, len(all))
	lengths := make([][]int, len(all))
	for f := range all {
		counts[f] = make([]map[string]int, len(documents))
		lengths[f] = make([]int, len(documents))
	}
	for d := range documents {
		document := &documents[d]
		x.ids[d] = document.ID
		for _, name := range slices.Compact([]string{fold(document.Name), fold(document.ID)}) {
			if name != "" {
				x.names[name] = append(x.names[name], int32(d)) //nolint:gosec // an index of documents in memory
			}
		}
		for f := range all {
			counts[f][d] = make(map[string]int)
			for _, text := range all[f].texts(document) {
				for _, word := range split(text) {
					for _, part := range word.all() {
						term, ok := stems[part]
						if !ok {
							term = stem(part)
							stems[part] = term
						}
						counts[f][d][term]++
						lengths[f][d]++
					}
				}
			}
		}
	}
	x.addTerms(all, counts, lengths)
	x.words = slices.Sorted(maps.Keys(stems))
	for _, word := range x.words {
		length := utf8.RuneCountInString(word)
		x.byLength[length] = append(x.byLength[length], word)
	}
	return x
}

// addTerms works out the share of each term in each document.
func (x *Index) addTerms(all []field, counts [][]map[string]int, lengths [][]int) {
	for d := range x.ids {
		weighted := make(map[string]float64)
		for f := range all {
			average := mean(lengths[f])
			if average == 0 {
				continue
			}
			long := 1 - all[f].norm + all[f].norm*float64(lengths[f][d])/average
			for term, count := range counts[f][d] {
				weighted[term] += all[f].weight * float64(count) / long
			}
		}
		for term, weight := range weighted {
			share := float32(weight / (saturation + weight))
			x.terms[term] = append(x.terms[term], posting{int32(d), share}) //nolint:gosec // an index of documents in memory
		}
	}
}

// mean is that of the fields which are not empty.
func mean(lengths []int) float64 {
	sum, n := 0, 0
	for _, length := range lengths {
		if length > 0 {
			sum += length
			n++
		}
	}
	return float64(sum) / max(1, float64(n))
}

// maxWords bounds the words of a query that count.
const maxWords = 64

// Search returns the documents that match a query, best first, at most limit
// of them. Documents that match as well are in the order of their IDs.
func (x *Index) Search(query string, limit int) []Hit {
	if limit <= 0 {
		return nil
	}
	scores := make([]float64, len(x.ids))
	total := 0.0
	for _, asked := range x.ask(query) {
		total += asked.worth
		for _, p := range x.shares(asked.terms) {
			scores[p.document] += asked.worth * float64(p.share)
		}
	}
	var hits []Hit
	exact := x.names[fold(query)]
	for d, score := range scores {
		switch {
		case slices.Contains(exact, int32(d)): //nolint:gosec // an index of documents in memory
			hits = append(hits, Hit{x.ids[d], 1})
		case score > 0:
			hits = append(hits, Hit{x.ids[d], min(score/total, almost)})
		}
	}
	slices.SortFunc(hits, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(a.ID, b.ID))
	})
	return hits[:min(limit, len(hits))]
}

// almost is the best score of a query that is not the name.
const almost = 0.99

// An ask is a word of a query: the terms that stand for it, each with how well
// it does, and how much the word is worth.
type ask struct {
	terms []term
	worth float64
}

type term struct {
	stem  string
	match float64
}

// ask returns what a query asks for. Words that say nothing are left out,
// unless there are no others.
func (x *Index) ask(query string) []ask {
	var asked []ask
	for _, keep := range []func(string) bool{func(w string) bool { return !isStopWord(w) }, func(string) bool { return true }} {
		seen := make(map[string]bool)
		for _, word := range split(query) {
			for _, part := range x.partsKnown(word) {
				if keep(part) && !seen[stem(part)] && len(asked) < maxWords {
					seen[stem(part)] = true
					asked = append(asked, x.askFor(part))
				}
			}
		}
		if len(asked) > 0 {
			break
		}
	}
	return asked
}

// partsKnown returns a word of a query as one if the index has it or it has
// only one part, and else its parts.
func (x *Index) partsKnown(w word) []string {
	if _, ok := x.terms[stem(w.whole)]; ok || len(w.parts) < 2 {
		return []string{w.whole}
	}
	return w.parts
}

// askFor returns what a word stands for. A word that the index does not have
// is worth half, however rare: much of a sentence is not about what is looked
// for.
func (x *Index) askFor(word string) ask {
	known := stem(word)
	if postings, ok := x.terms[known]; ok {
		return ask{[]term{{known, 1}}, x.worth(len(postings))}
	}
	near := x.near(word)
	if len(near) == 0 {
		return ask{nil, x.worth(0) / 2}
	}
	worth := 0.0
	for _, t := range near {
		worth = max(worth, x.worth(len(x.terms[t.stem])))
	}
	return ask{near, worth}
}

// worth is BM25's inverse document frequency of a term that n documents have.
func (x *Index) worth(n int) float64 {
	return math.Log(1 + (float64(len(x.ids)-n)+0.5)/(float64(n)+0.5))
}

// shares returns the documents that have one of terms, with the best share of
// each, in the order of the documents.
func (x *Index) shares(terms []term) []posting {
	if len(terms) == 1 && terms[0].match == 1 {
		return x.terms[terms[0].stem]
	}
	best := make(map[int32]float32)
	for _, t := range terms {
		for _, p := range x.terms[t.stem] {
			best[p.document] = max(best[p.document], p.share*float32(t.match))
		}
	}
	merged := make([]posting, 0, len(best))
	for document, share := range best {
		merged = append(merged, posting{document, share})
	}
	slices.SortFunc(merged, func(a, b posting) int { return cmp.Compare(a.document, b.document) })
	return merged
}
