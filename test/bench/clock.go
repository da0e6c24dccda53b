package main

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"time"
)

// quiet clears the client's garbage away and keeps the collector from running
// until the returned function is called.
func quiet() (resume func()) {
	runtime.GC()
	percent := debug.SetGCPercent(-1)
	return func() { debug.SetGCPercent(percent) }
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// An arm is one of the things that are compared: it does its work once and
// returns the figure.
type arm struct {
	name string
	do   func() (float64, error)
}

// interleave lets every arm do its work once in each round, and each one come
// first in turn, so that what the machine does meanwhile falls on all of them.
// It returns the figures of each arm, in the order of the rounds.
func interleave(ctx context.Context, rounds int, arms []arm) (map[string][]float64, error) {
	figures := make(map[string][]float64, len(arms))
	for round := range rounds {
		for i := range arms {
			a := arms[(round+i)%len(arms)]
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			figure, err := a.do()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", a.name, err)
			}
			figures[a.name] = append(figures[a.name], figure)
		}
	}
	return figures, nil
}

// eventually waits until a condition holds. It is for what happens outside of
// this process and cannot be waited for.
func eventually(ctx context.Context, every time.Duration, holds func() (bool, error)) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		ok, err := holds()
		if ok || err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// steady reports whether the last values differ by no more than a hundredth.
func steady(values []float64, last int) bool {
	if len(values) < last {
		return false
	}
	low, high := math.Inf(1), 0.0
	for _, v := range values[len(values)-last:] {
		low, high = min(low, v), max(high, v)
	}
	return high-low <= high/100
}
