// Package sample says what repeated measurements are worth: their median, and
// how sure it is.
//
// On a shared machine single times say little, and means less. So what is
// compared is measured in pairs, one right after the other, and it is the
// differences or ratios of the pairs that are summed up here.
package sample

import (
	"math"
	"slices"
)

// Median returns the middle of the values, or the mean of the middle two; NaN
// if there are none.
func Median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n == 0 {
		return math.NaN()
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// confidence is how often the interval holds the true median.
const confidence = 0.95

// Interval returns a 95 % interval of the median. Its ends are two of the
// values, so it assumes nothing of their distribution: the true median lies
// outside only if nearly all values fell on one side of it. Of fewer than six
// values, which cannot be that sure, it is the smallest and the largest. Both
// ends are NaN if there are no values.
func Interval(values []float64) (low, high float64) {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n == 0 {
		return math.NaN(), math.NaN()
	}
	k := rank(n)
	return sorted[k], sorted[n-1-k]
}

// rank returns how many of n sorted values the interval leaves out at each
// end. It misses the true median at one end if no more values than these fell
// beyond it, as often as n throws of a coin bring no more heads than that;
// each end may miss in half of what the confidence leaves.
func rank(n int) int {
	misses := 0.0
	for out := range n / 2 {
		misses += binomial(n, out)
		if misses > (1-confidence)/2 {
			return max(0, out-1)
		}
	}
	return max(0, n/2-1)
}

// binomial returns the probability of k heads in n throws.
func binomial(n, k int) float64 {
	return math.Exp(logFactorial(n) - logFactorial(k) - logFactorial(n-k) - float64(n)*math.Ln2)
}

func logFactorial(n int) float64 {
	log, _ := math.Lgamma(float64(n) + 1)
	return log
}

// Differences returns a[i]-b[i], for as many pairs as there are.
func Differences(a, b []float64) []float64 {
	return pairs(a, b, func(x, y float64) float64 { return x - y })
}

// Sums returns a+b of each pair.
func Sums(a, b []float64) []float64 {
	return pairs(a, b, func(x, y float64) float64 { return x + y })
}

// Ratios returns a[i]/b[i], for as many pairs as there are.
func Ratios(a, b []float64) []float64 {
	return pairs(a, b, func(x, y float64) float64 { return x / y })
}

func pairs(a, b []float64, join func(x, y float64) float64) []float64 {
	joined := make([]float64, min(len(a), len(b)))
	for i := range joined {
		joined[i] = join(a[i], b[i])
	}
	return joined
}
