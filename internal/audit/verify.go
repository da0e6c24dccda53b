package audit

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A Fault is what is wrong with a record.
type Fault string

// The faults. All but [Incomplete] are tampering, or damage that cannot be
// told from it.
const (
	// Edited says that a record does not match its hash, or is not readable.
	Edited Fault = "edited"
	// Replaced says that a record matches its hash, but the one after it was
	// chained to another.
	Replaced Fault = "replaced"
	// Deleted says that records are missing.
	Deleted Fault = "deleted"
	// Moved says that records stand in another order than they were written.
	Moved Fault = "moved"
	// Inserted says that a record does not belong there.
	Inserted Fault = "inserted"
	// Incomplete says that a file ends in a part of a record: the process, the
	// machine or the disk ended while it was written. It is no tampering.
	Incomplete Fault = "incomplete"
)

// A Problem is a fault and its place.
type Problem struct {
	Fault Fault
	// File is the file's name; Line is 1-based, 0 where no line is meant.
	File string
	Line int
	// Message says what is wrong, in words.
	Message string
}

// String returns "file:line: fault: message".
func (p Problem) String() string {
	place := p.File
	if p.Line > 0 {
		place = fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	return fmt.Sprintf("%s: %s: %s", place, p.Fault, p.Message)
}

// A Chain is what [Verify] found of one gateway.
type Chain struct {
	Gateway string
	Files   int
	Records int
	// First and Last are the times of the first and last record.
	First, Last time.Time
	// Hash is the hash of the last record. Kept somewhere else, it proves later
	// that the chain up to here was not rewritten.
	Hash     string
	Problems []Problem
}

// A Report is what [Verify] found, by gateway.
type Report struct{ Chains []Chain }

// Intact reports whether nothing was tampered with.
func (r Report) Intact() bool {
	for _, c := range r.Chains {
		for _, p := range c.Problems {
			if p.Fault != Incomplete {
				return false
			}
		}
	}
	return true
}

// Verify reads all records in a folder and checks their hashes, their order
// and their end. The error is about reading only; what is wrong with the
// records is in the report. A gateway may be writing meanwhile.
func Verify(dir string) (Report, error) {
	report, err := verifyDir(dir)
	if err != nil {
		return Report{}, fmt.Errorf("audit record: %w", err)
	}
	return report, nil
}

func verifyDir(dir string) (Report, error) {
	// The heads are read before the files: a gateway that is writing adds to
	// what its head said, and takes nothing away. One that begins in between
	// is left for the next time.
	before, err := files(dir)
	if err != nil {
		return Report{}, err
	}
	heads, err := filepath.Glob(filepath.Join(dir, "*.head"))
	if err != nil {
		return Report{}, err
	}
	verifiers := make(map[string]*verifier)
	for _, f := range before {
		verifiers[f.gateway] = nil
	}
	for _, path := range heads {
		verifiers[strings.TrimSuffix(filepath.Base(path), ".head")] = nil
	}
	for gateway := range verifiers {
		v := &verifier{chain: Chain{Gateway: gateway}, hashes: make(map[uint64]string)}
		verifiers[gateway] = v
		var ok bool
		v.remembered, ok, err = readHead(dir, gateway)
		if err != nil {
			v.add(Edited, gateway+".head", 0, "%v", err)
		} else if !ok {
			v.add(Deleted, gateway+".head", 0, "it is missing, so that a record that was cut off at its end looks whole")
		}
	}
	all, err := files(dir)
	if err != nil {
		return Report{}, err
	}
	for _, f := range all {
		if v := verifiers[f.gateway]; v != nil {
			if err := v.read(f); err != nil {
				return Report{}, err
			}
		}
	}
	var report Report
	for _, gateway := range slices.Sorted(maps.Keys(verifiers)) {
		v := verifiers[gateway]
		v.checkEnd(v.checkOrder())
		report.Chains = append(report.Chains, v.chain)
	}
	return report, nil
}

// A link is what the check of a chain keeps of a record. A record that cannot
// be trusted has the number 0.
type link struct {
	seq        uint64
	prev, hash string
	file       string
	line       int
}

// A verifier checks the files of one gateway.
type verifier struct {
	chain Chain
	// remembered is the end that the head says.
	remembered head
	// number is that of the file that was read last.
	number int
	links  []link
	// hashes are those of the links, by number.
	hashes map[uint64]string
}

func (v *verifier) add(fault Fault, file string, line int, format string, values ...any) {
	v.chain.Problems = append(v.chain.Problems, Problem{fault, file, line, fmt.Sprintf(format, values...)})
}

// read checks each record of a file by itself and keeps its link.
func (v *verifier) read(f file) error {
	if f.number != v.number+1 {
		v.add(Deleted, f.name(), 0, "the file before it is missing")
	}
	v.number = f.number
	v.chain.Files++
	opened, err := os.Open(f.path)
	if err != nil {
		return err
	}
	defer func() { _ = opened.Close() }()
	_, err = scan(opened, func(l line) error {
		if !l.complete {
			v.add(Incomplete, f.name(), l.number, "the last record was not written whole")
			return nil
		}
		r, err := ParseRecord(l.text)
		v.chain.Records++
		switch {
		case l.long:
			v.add(Edited, f.name(), l.number, "the line is over %d bytes", maxLine)
		case err != nil:
			v.add(Edited, f.name(), l.number, "%v", err)
		case r.Gateway != v.chain.Gateway:
			v.add(Inserted, f.name(), l.number, "it is of gateway %q", r.Gateway)
		default:
			v.keep(r, f, l.number)
			return nil
		}
		v.links = append(v.links, link{file: f.name(), line: l.number})
		return nil
	})
	return err
}

// keep keeps the link of a record that matches its hash.
func (v *verifier) keep(r Record, f file, number int) {
	if number == 1 && r.Kind != KindOpen {
		v.add(Deleted, f.name(), number, "the file does not begin with its opening record")
	}
	if missing := r.Detail[detailMissing]; r.Kind == KindOpen && missing != "" {
		v.add(Deleted, f.name(), number, "records %d to %s were missing when the file was opened", r.Seq, missing)
	}
	v.links = append(v.links, link{r.Seq, r.Prev, r.Hash, f.name(), number})
	if _, twice := v.hashes[r.Seq]; !twice {
		v.hashes[r.Seq] = r.Hash
	}
	if v.chain.First.IsZero() {
		v.chain.First = r.Time
	}
	v.chain.Last, v.chain.Hash = r.Time, r.Hash
}

// checkOrder follows the links and returns the number of the last record. A
// record that cannot be trusted counts as the one that was to stand there.
func (v *verifier) checkOrder() (last uint64) {
	numbers := slices.Sorted(maps.Keys(v.hashes))
	// between returns the trusted numbers from a to b, b not included.
	between := func(a, b uint64) []uint64 {
		i, _ := slices.BinarySearch(numbers, a)
		j, _ := slices.BinarySearch(numbers, b)
		return numbers[i:j]
	}
	seen := make(map[uint64]bool)
	var blanks uint64
	for _, l := range v.links {
		if l.seq == 0 {
			blanks++
			continue
		}
		if want := last + 1; l.seq > want {
			later := between(want, l.seq)
			if len(later) > 0 {
				v.add(Moved, l.file, l.line, "record %d stands before record %d", l.seq, later[0])
			}
			if gap, there := l.seq-want, uint64(len(later))+blanks; gap > there {
				v.add(Deleted, l.file, l.line, "%d of the records %d to %d are missing", gap-there, want, l.seq-1)
			}
		} else if l.seq < want && seen[l.seq] {
			v.add(Inserted, l.file, l.line, "record %d is there twice", l.seq)
		}
		seen[l.seq] = true
		if before, ok := v.hashes[l.seq-1]; l.seq > 1 && ok && before != l.prev || l.seq == 1 && l.prev != "" {
			v.add(Replaced, l.file, l.line, "record %d was chained to another record %d", l.seq, l.seq-1)
		}
		last, blanks = max(last, l.seq), 0
	}
	return last + blanks
}

// checkEnd compares the last record with what the head remembers.
func (v *verifier) checkEnd(last uint64) {
	remembered := v.remembered
	name := v.chain.Gateway + ".head"
	if remembered.seq > last {
		v.add(Deleted, name, 0, "records %d to %d are missing from the end", last+1, remembered.seq)
		return
	}
	if hash, ok := v.hashes[remembered.seq]; ok && hash != remembered.hash {
		v.add(Replaced, name, 0, "record %d is not the one that it remembers", remembered.seq)
	}
}
