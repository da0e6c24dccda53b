package ranking

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dockgate/dockgate/internal/search"
)

// toolsPerServer is that of a made-up corpus.
const toolsPerServer = 10

// A Scale is the speed with a made-up corpus. Queries and updates are measured
// while the other goes on.
type Scale struct {
	Tools     int     `json:"tools"`
	Servers   int     `json:"servers"`
	BuildMS   float64 `json:"build_ms"`
	Bytes     int64   `json:"bytes"`
	P50       float64 `json:"p50_us"`
	P99       float64 `json:"p99_us"`
	UpdateP50 float64 `json:"update_p50_us"`
	UpdateP99 float64 `json:"update_p99_us"`
}

func (s Scale) table(w io.Writer) error {
	_, err := fmt.Fprintf(w, `%d tools of %d servers: build %.0f ms, %.1f MB
query  p50 %.0f µs, p99 %.0f µs, while servers are updated
update p50 %.0f µs, p99 %.0f µs, while queries run
`, s.Tools, s.Servers, s.BuildMS, float64(s.Bytes)/1e6, s.P50, s.P99, s.UpdateP50, s.UpdateP99)
	return err
}

// MeasureScale measures an index of so many made-up tools, by as many queries
// as are said.
func MeasureScale(tools, samples int) (Scale, error) {
	made := newMaker()
	servers := made.servers(tools)
	index, report := measureBuild(func() *search.Index { return search.NewTools(servers) })
	s := Scale{Tools: index.Len(), Servers: len(servers), BuildMS: report.BuildMS, Bytes: report.Bytes}
	queries := make([]string, samples)
	for i := range queries {
		queries[i] = made.query()
	}
	updates := make([]search.Server, 256)
	for i := range updates {
		updates[i] = made.server(made.random.IntN(len(servers)))
	}
	done := make(chan struct{})
	var group errgroup.Group
	group.Go(func() error {
		defer close(done)
		s.P50, s.P99 = latencies(samples, func(i int) {
			index.Search(search.Query{Text: queries[i], Limit: 10})
		})
		return nil
	})
	var took []float64
	group.Go(func() error {
		ticker := time.NewTicker(5 * time.Millisecond)
		defer ticker.Stop()
		for i := 0; ; i++ {
			began := time.Now()
			index.Put(updates[i%len(updates)])
			took = append(took, microseconds(time.Since(began)))
			select {
			case <-done:
				return nil
			case <-ticker.C:
			}
		}
	})
	if err := group.Wait(); err != nil {
		return Scale{}, err
	}
	if index.Len() != s.Tools {
		return Scale{}, errors.New("updates changed the number of tools")
	}
	s.UpdateP50, s.UpdateP99 = percentile(took, 0.5), percentile(took, 0.99)
	runtime.KeepAlive(index)
	return s, nil
}

// A maker makes up servers and queries, the same in every run.
type maker struct {
	random *rand.Rand
	// rare are words of no language, as product names and identifiers are.
	rare []string
}

func newMaker() *maker {
	m := &maker{random: rand.New(rand.NewPCG(1, 2))} //nolint:gosec // the same in every run
	syllables := strings.Fields("ba ce di fo gu ha ki lo mu na pe qui ro sa te vi wo xa yo zu bra cli dre fla gri plo stu")
	for range 12_000 {
		var word strings.Builder
		for range 2 + m.random.IntN(3) {
			word.WriteString(syllables[m.random.IntN(len(syllables))])
		}
		m.rare = append(m.rare, word.String())
	}
	return m
}

func pick(m *maker, from []string) string {
	// The first are the most frequent, as in a language.
	i := int(m.random.ExpFloat64() * float64(len(from)) / 5)
	return from[min(i, len(from)-1)]
}

func verbs() []string {
	return strings.Fields("get list create search update delete send add fetch read check analyze convert generate export import start stop run compare calculate download upload merge assign schedule translate validate")
}

func nouns() []string {
	return strings.Fields("file user message issue page document image record event order customer project report task invoice account server database table query repository branch commit comment video song weather forecast location route flight hotel ticket payment product price stock currency email calendar meeting note folder log metric alert container cluster image volume secret policy role token session cart coupon shipment patient appointment recipe ingredient workout lesson course quiz article headline podcast playlist contact lead campaign keyword domain website form survey dashboard chart model dataset experiment sensor device camera map vehicle station property lease contract case law vote translation summary")
}

func (m *maker) servers(tools int) []search.Server {
	all := make([]search.Server, max(1, tools/toolsPerServer))
	for i := range all {
		all[i] = m.server(i)
	}
	return all
}

func (m *maker) server(number int) search.Server {
	rare, noun := pick(m, m.rare), pick(m, nouns())
	s := search.Server{
		Name: fmt.Sprintf("%s-%d", m.rare[number%len(m.rare)], number), Title: rare + " " + noun, Description: m.sentence(12),
		Keywords: []string{noun, pick(m, nouns())}, Tags: []string{noun},
	}
	for i := range toolsPerServer {
		t := search.Tool{Name: fmt.Sprintf("%s_%s_%s%d", pick(m, verbs()), pick(m, nouns()), pick(m, nouns()), i), Description: m.sentence(16)}
		for range 1 + m.random.IntN(5) {
			t.Parameters = append(t.Parameters, search.Parameter{Name: pick(m, nouns()) + "_id", Description: m.sentence(8)})
		}
		s.Tools = append(s.Tools, t)
	}
	return s
}

func (m *maker) sentence(length int) string {
	words := make([]string, length)
	for i := range words {
		switch m.random.IntN(5) {
		case 0:
			words[i] = pick(m, verbs())
		case 1:
			words[i] = pick(m, m.rare)
		case 2:
			words[i] = "the"
		default:
			words[i] = pick(m, nouns())
		}
	}
	return strings.Join(words, " ")
}

// query is a sentence, or some words, with a typing mistake here and there.
func (m *maker) query() string {
	text := []rune(m.sentence(2 + m.random.IntN(14)))
	if m.random.IntN(2) == 0 {
		i := m.random.IntN(len(text) - 1)
		text[i], text[i+1] = text[i+1], text[i]
	}
	return string(text)
}
