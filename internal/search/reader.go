package search

import (
	"runtime"
	"strings"
	"sync"

	"github.com/dockgate/dockgate/internal/search/near"
	"github.com/dockgate/dockgate/internal/search/text"
	"github.com/dockgate/dockgate/internal/search/words"
)

// A reading is what an index needs of tools or servers.
type reading struct {
	entries []entryReading
	// terms are those of the entries, which name them by their place here.
	terms []term
	// words are those that can be misspelled, with the places of their terms.
	words map[string]int32
}

// An entryReading is what an index needs of one tool or server.
type entryReading struct {
	entry *entry
	// terms are places, and shares what the entry has of each.
	terms  []int32
	shares []float32
}

// readAll reads servers, on all processors.
func readAll(v *words.Vocabulary, k kind, servers []Server) []reading {
	parts := make([]reading, min(runtime.GOMAXPROCS(0), len(servers)))
	var group sync.WaitGroup
	for i := range parts {
		group.Go(func() {
			r := newReader(v)
			for s := i * len(servers) / len(parts); s < (i+1)*len(servers)/len(parts); s++ {
				r.readServer(k, &servers[s])
			}
			parts[i] = r.reading
		})
	}
	group.Wait()
	return parts
}

// A reader works out the terms of fields. It remembers words, because texts
// repeat them; it is for one goroutine and not for long.
type reader struct {
	vocabulary *words.Vocabulary
	reading    reading
	// places are those of terms in the reading.
	places map[term]int32
	// runs are words as they were written, with what is in them.
	runs map[string][]compound
	// known are the parts of words, and words that were joined.
	known map[string]*placed
	// weights are those of the terms of one entry, by place, and touched the
	// places where there is one.
	weights []float64
	touched []int32
	text    []compound
	phrase  []*token
}

// A placed token has the places of its terms.
type placed struct {
	*token
	place    int32
	concepts []int32
	grams    []int32
}

// A compound is a word with its parts.
type compound struct {
	parts []*placed
	whole *placed
}

func newReader(v *words.Vocabulary) *reader {
	return &reader{
		vocabulary: v, reading: reading{words: make(map[string]int32)}, places: make(map[term]int32),
		runs: make(map[string][]compound), known: make(map[string]*placed),
	}
}

func (r *reader) readServer(k kind, s *Server) {
	if k == findsServers {
		r.read(&entry{server: s.Name, tags: lower(s.Tags), folded: text.Fold(s.Name)}, serverFields(s))
		return
	}
	for i := range s.Tools {
		t := &s.Tools[i]
		r.read(&entry{
			server: s.Name, tool: t.Name, disabled: t.Disabled, tags: lower(s.Tags, t.Tags), folded: text.Fold(t.Name),
		}, toolFields(s, t))
	}
}

func lower(lists ...[]string) []string {
	var all []string
	for _, list := range lists {
		for _, tag := range list {
			all = append(all, strings.ToLower(tag))
		}
	}
	return all
}

func (r *reader) read(e *entry, fields []field) {
	r.touched = r.touched[:0]
	for i := range fields {
		r.readField(&fields[i])
	}
	read := entryReading{e, make([]int32, len(r.touched)), make([]float32, len(r.touched))}
	for i, place := range r.touched {
		read.terms[i], read.shares[i] = place, share(r.weights[place])
		r.weights[place] = 0
	}
	r.reading.entries = append(r.reading.entries, read)
}

func (r *reader) readField(f *field) {
	r.text = r.text[:0]
	ends := make([]int, len(f.texts))
	length := 0
	for i, said := range f.texts {
		for run := range text.Runs(said) {
			for _, w := range r.run(run) {
				r.text = append(r.text, w)
				length += len(w.parts)
			}
		}
		ends[i] = len(r.text)
	}
	if length == 0 {
		return
	}
	weight := f.weight / (1 - f.norm + f.norm*float64(length)/f.usual)
	begin := 0
	for _, end := range ends {
		r.count(f, r.text[begin:end], weight)
		begin = end
	}
}

// count adds the weight of each term of a text.
func (r *reader) count(f *field, said []compound, weight float64) {
	r.phrase = r.phrase[:0]
	begins := false
	for _, w := range said {
		for _, t := range w.parts {
			r.phrase = append(r.phrase, t.token)
			begins = begins || t.begins
			r.add(t.place, weight)
			for _, concept := range t.concepts {
				r.add(concept, weight)
			}
			if f.spelled && len(t.word) >= near.MinLength {
				r.reading.words[t.word] = t.place
			}
		}
		if len(w.parts) > 1 {
			r.add(w.whole.place, weight)
		}
		if f.spelled {
			for _, gram := range w.whole.grams {
				r.add(gram, weight)
			}
		}
	}
	if begins {
		phrases(r.vocabulary, r.phrase, func(_ *token, senses []words.Sense) {
			for _, sense := range senses {
				r.add(r.place(conceptTerm(sense.Concept)), weight)
			}
		})
	}
	if f.joins {
		for i := range len(r.phrase) - 1 {
			r.add(r.token(r.phrase[i].word+r.phrase[i+1].word).place, weight)
		}
	}
}

func (r *reader) add(place int32, weight float64) {
	if r.weights[place] == 0 {
		r.touched = append(r.touched, place)
	}
	r.weights[place] += weight
}

// run returns the words of a run of letters.
func (r *reader) run(written string) []compound {
	all, ok := r.runs[written]
	if !ok {
		for _, w := range text.SplitRun(written) {
			c := compound{whole: r.token(w.Whole)}
			for _, part := range w.All() {
				c.parts = append(c.parts, r.token(part))
			}
			all = append(all, c)
		}
		r.runs[written] = all
	}
	return all
}

func (r *reader) token(word string) *placed {
	t, ok := r.known[word]
	if !ok {
		made := newToken(r.vocabulary, word)
		t = &placed{token: made, place: r.place(made.term)}
		for _, sense := range made.senses {
			t.concepts = append(t.concepts, r.place(conceptTerm(sense.Concept)))
		}
		for _, gram := range made.grams {
			t.grams = append(t.grams, r.place(gram))
		}
		r.known[word] = t
	}
	return t
}

func (r *reader) place(t term) int32 {
	place, ok := r.places[t]
	if !ok {
		place = int32(len(r.reading.terms)) //nolint:gosec // terms in memory
		r.places[t] = place
		r.reading.terms = append(r.reading.terms, t)
		r.weights = append(r.weights, 0)
	}
	return place
}
