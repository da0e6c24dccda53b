package audit

import (
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// pollEvery is how often [Follow] looks for new records. Files are read rather
// than watched: it works on every file system, and across containers.
const pollEvery = 250 * time.Millisecond

// Tail returns the last n records of all gateways in a folder, oldest first.
// It checks each against its own hash, not the chain; a line that does not
// match is an error.
func Tail(ctx context.Context, dir string, n int) ([]Record, error) {
	f := follower{dir: dir, offsets: make(map[string]int64), lines: make(map[string]int)}
	return f.read(ctx, n)
}

// Follow yields the last n records of all gateways in a folder, oldest first,
// and then each new one, until ctx ends or the caller has enough. An error is
// the last thing it yields; the end of ctx is none.
func Follow(ctx context.Context, dir string, n int) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		f := follower{dir: dir, offsets: make(map[string]int64), lines: make(map[string]int)}
		ticker := time.NewTicker(pollEvery)
		defer ticker.Stop()
		for limit := n; ; limit = -1 {
			records, err := f.read(ctx, limit)
			if err != nil {
				if ctx.Err() == nil {
					yield(Record{}, err)
				}
				return
			}
			for _, r := range records {
				if !yield(r, nil) {
					return
				}
			}
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	}
}

// A follower reads what is new in a folder.
type follower struct {
	dir string
	// offsets and lines say how much of each file was read.
	offsets map[string]int64
	lines   map[string]int
}

// read returns the records that came since the last read in the order of their
// times, the last n of them if n is not negative.
func (f *follower) read(ctx context.Context, n int) ([]Record, error) {
	all, err := files(f.dir)
	if err != nil {
		return nil, fmt.Errorf("audit record: %w", err)
	}
	var records []Record
	for _, file := range all {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		fresh, err := f.readFile(file)
		if err != nil {
			return nil, fmt.Errorf("audit record: %w", err)
		}
		if records = append(records, fresh...); n >= 0 {
			records = lastByTime(records, n)
		}
	}
	return lastByTime(records, n), nil
}

// lastByTime sorts records and returns the last n, all of them if n is
// negative.
func lastByTime(records []Record, n int) []Record {
	slices.SortStableFunc(records, func(a, b Record) int {
		return cmp.Or(a.Time.Compare(b.Time), strings.Compare(a.Gateway, b.Gateway), cmp.Compare(a.Seq, b.Seq))
	})
	if n >= 0 && len(records) > n {
		return slices.Clone(records[len(records)-n:])
	}
	return records
}

func (f *follower) readFile(source file) ([]Record, error) {
	opened, err := os.Open(source.path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = opened.Close() }()
	if _, err := opened.Seek(f.offsets[source.path], io.SeekStart); err != nil {
		return nil, err
	}
	var records []Record
	taken, err := scan(opened, func(l line) error {
		if !l.complete {
			return nil
		}
		f.lines[source.path]++
		r, err := ParseRecord(l.text)
		if err != nil {
			return fmt.Errorf("%s:%d: %w", source.name(), f.lines[source.path], err)
		}
		records = append(records, r)
		return nil
	})
	f.offsets[source.path] += taken
	return records, err
}

// A Format is how [Export] writes records.
type Format string

// The formats. JSONL gives the lines as they stand in the files, so that they
// can still be verified; CSV has a header row, and the details as JSON.
const (
	JSONL Format = "jsonl"
	CSV   Format = "csv"
)

// Export writes all records in a folder that are not older than since, gateway
// after gateway, each in its order. A line that does not match its hash is an
// error: an export is as good as its source.
func Export(w io.Writer, dir string, since time.Time, format Format) error {
	var write func(Record, []byte) error
	end := func() error { return nil }
	switch format {
	case JSONL:
		write = func(_ Record, text []byte) error {
			_, err := fmt.Fprintf(w, "%s\n", text)
			return err
		}
	case CSV:
		rows := csv.NewWriter(w)
		if err := rows.Write(csvHeader()); err != nil {
			return err
		}
		write = func(r Record, _ []byte) error {
			row, err := csvRow(r)
			if err != nil {
				return err
			}
			return rows.Write(row)
		}
		end = func() error {
			rows.Flush()
			return rows.Error()
		}
	default:
		return fmt.Errorf("export format %q: want %s or %s", format, JSONL, CSV)
	}
	all, err := files(dir)
	if err != nil {
		return fmt.Errorf("audit record: %w", err)
	}
	for _, f := range all {
		if err := exportFile(f, since, write); err != nil {
			return fmt.Errorf("audit record: %w", err)
		}
	}
	return end()
}

func exportFile(f file, since time.Time, write func(Record, []byte) error) error {
	opened, err := os.Open(f.path)
	if err != nil {
		return err
	}
	defer func() { _ = opened.Close() }()
	_, err = scan(opened, func(l line) error {
		if !l.complete {
			return nil
		}
		r, err := ParseRecord(l.text)
		if err != nil {
			return fmt.Errorf("%s:%d: %w", f.name(), l.number, err)
		}
		if r.Time.Before(since) {
			return nil
		}
		return write(r, l.text)
	})
	return err
}

func csvHeader() []string {
	return []string{
		"time", "gateway", "seq", "session", "principal", "kind", "server", "tool", "arguments",
		"outcome", "code", "duration_us", "bytes", "detail", "hash",
	}
}

func csvRow(r Record) ([]string, error) {
	var detail []byte
	if len(r.Detail) > 0 {
		var err error
		if detail, err = json.Marshal(r.Detail); err != nil {
			return nil, err
		}
	}
	row := []string{
		r.Time.Format(time.RFC3339Nano), r.Gateway, strconv.FormatUint(r.Seq, 10), r.Session, r.Principal, string(r.Kind),
		r.Server, r.Tool, r.Arguments, r.Outcome, r.Code, strconv.FormatInt(r.DurationUS, 10), strconv.FormatInt(r.Bytes, 10),
		string(detail), r.Hash,
	}
	for i, cell := range row {
		row[i] = inert(cell)
	}
	return row, nil
}

// inert returns a cell that no spreadsheet runs as a formula: names of tools
// come from servers that nobody trusts.
func inert(cell string) string {
	if cell != "" && strings.ContainsRune("=+-@\t\r", rune(cell[0])) {
		return "'" + cell
	}
	return cell
}
