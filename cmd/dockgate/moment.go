package main

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// A moment is a flag that is a time: a date, or a distance from now.
type moment struct {
	time.Time
	// ahead is whether a distance leads into the future or the past.
	direction direction
}

type direction time.Duration

const (
	ahead direction = 1
	back  direction = -1
)

var errMoment = errors.New("want a distance such as 30d or 12h, or a date such as 2030-12-31")

// Set reads the flag.
func (m *moment) Set(text string) error {
	now := time.Now()
	if date, err := time.ParseInLocation(time.DateOnly, text, time.Local); err == nil {
		m.Time = date
	} else if exact, err := time.Parse(time.RFC3339, text); err == nil {
		m.Time = exact
	} else if distance, err := parseDistance(text); err == nil {
		m.Time = now.Add(time.Duration(m.direction) * distance)
	} else {
		return errMoment
	}
	if m.direction == ahead && !m.After(now) {
		return errors.New("is in the past")
	}
	return nil
}

func parseDistance(text string) (time.Duration, error) {
	distance, err := time.ParseDuration(text)
	if days, found := strings.CutSuffix(text, "d"); found {
		var n int
		n, err = strconv.Atoi(days)
		if n > 100_000 {
			return 0, errMoment
		}
		distance = time.Duration(n) * 24 * time.Hour
	}
	if err != nil || distance <= 0 {
		return 0, errMoment
	}
	return distance, nil
}

// String returns the time; nothing if it was not set.
func (m *moment) String() string {
	if m.IsZero() {
		return ""
	}
	return m.Format(time.RFC3339)
}

// Type is the word in the help text.
func (m *moment) Type() string { return "time" }
