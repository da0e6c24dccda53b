package sample_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/test/bench/sample"
)

func upTo(n int) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = float64(n - i) // not sorted
	}
	return values
}

func TestMedian(t *testing.T) {
	tests := []struct {
		values []float64
		want   float64
	}{
		{[]float64{7}, 7},
		{[]float64{3, 1, 2}, 2},
		{[]float64{4, 1, 3, 2}, 2.5},
		{[]float64{1, 1, 1, 1000}, 1},
	}
	for _, tt := range tests {
		if got := sample.Median(tt.values); got != tt.want {
			t.Errorf("Median(%v) = %v, want %v", tt.values, got, tt.want)
		}
	}
	if got := sample.Median(nil); !math.IsNaN(got) {
		t.Errorf("Median(nil) = %v, want NaN", got)
	}
}

// The ranks are those of printed tables of the sign test.
func TestInterval(t *testing.T) {
	tests := []struct {
		n         int
		low, high float64
	}{
		{1, 1, 1},
		{2, 1, 2},
		{5, 1, 5},
		{6, 1, 6},
		{8, 1, 8},
		{9, 2, 8},
		{10, 2, 9},
		{15, 4, 12},
		{20, 6, 15},
		{25, 8, 18},
		{50, 18, 33},
		{100, 40, 61},
	}
	for _, tt := range tests {
		low, high := sample.Interval(upTo(tt.n))
		if low != tt.low || high != tt.high {
			t.Errorf("Interval(1 to %d) = %v, %v, want %v, %v", tt.n, low, high, tt.low, tt.high)
		}
	}
	low, high := sample.Interval(nil)
	if !math.IsNaN(low) || !math.IsNaN(high) {
		t.Errorf("Interval(nil) = %v, %v, want NaN, NaN", low, high)
	}
	// Thousands of values are beyond what factorials can hold.
	if low, high := sample.Interval(upTo(5000)); low >= 2500 || high <= 2501 || high-low > 200 {
		t.Errorf("Interval(1 to 5000) = %v, %v, want narrowly around 2500.5", low, high)
	}
}

func TestIntervalHoldsTheMedian(t *testing.T) {
	const runs = 4000
	source := rand.New(rand.NewPCG(1, 2))
	held := 0
	for range runs {
		values := make([]float64, 20)
		for i := range values {
			values[i] = source.ExpFloat64()
		}
		if low, high := sample.Interval(values); low <= math.Ln2 && math.Ln2 <= high {
			held++
		}
	}
	if share := float64(held) / runs; share < 0.95 || share > 0.97 {
		t.Errorf("the interval of 20 values held the true median in %.3f of the runs, want 0.959", share)
	}
}

func TestPairs(t *testing.T) {
	a, b := []float64{5, 8, 9}, []float64{4, 2}
	if diff := cmp.Diff([]float64{1, 6}, sample.Differences(a, b)); diff != "" {
		t.Errorf("Differences (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]float64{1.25, 4}, sample.Ratios(a, b)); diff != "" {
		t.Errorf("Ratios (-want +got):\n%s", diff)
	}
}
