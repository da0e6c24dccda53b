package search

import "math"

// The weights of the fields of a tool. Their order is that of a relevance: the
// name, the description, the parameters; tags least, and what is said of the
// server, because they say the same of many tools.
const (
	toolName             = 8.0
	toolTitle            = 6.0
	toolDescription      = 3.0
	parameterName        = 2.0
	parameterDescription = 1.4
	toolTag              = 1.0
	ofServerName         = 2.0
	ofServerKeyword      = 1.0
	ofServerDescription  = 0.3
)

// The weights of the fields of a server. What its tools say counts little: a
// server with many tools has every word.
const (
	serverName        = 8.0
	serverTitle       = 6.0
	serverKeyword     = 5.0
	serverDescription = 2.5
	serverToolName    = 2.0
	serverTag         = 1.5
	serverTool        = 0.5
)

// saturation is BM25's k1, in units of the weights above: who has this much of
// a term has half of what can be had.
const saturation = 4.0

// What counts less than a word itself.
const (
	// otherWord is a synonym.
	otherWord = 0.4
	// A topic that the question is about counts more for a server, which is about
	// a subject, than for a tool, which does one thing with it.
	subjectOfServer = 1.8
	subjectOfTool   = 1.4
	// lettersAlike is a word of the same letters.
	lettersAlike = 0.5
	// onePart is how much of the score an entry has for the part of a query that
	// it fits best; the rest is for the whole.
	onePart = 0.7
)

// share returns how much a weight is of what can be had, below 1.
func share(weight float64) float32 { return float32(weight / (saturation + weight)) }

// idf is BM25's inverse document frequency of a term that n of all have: how
// much the term says.
func idf(n, all int) float64 {
	return math.Log(1 + (float64(all-n)+0.5)/(float64(n)+0.5))
}
