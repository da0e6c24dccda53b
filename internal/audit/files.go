package audit

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The names in an audit folder: GATEWAY-000001.jsonl and so on hold records,
// GATEWAY.head the end of the chain, GATEWAY.lock the writer's lock.
var (
	filePattern    = regexp.MustCompile(`^([A-Za-z0-9_-]{1,64})-([0-9]{6,12})\.jsonl$`)
	gatewayPattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
)

// A file is one file of records.
type file struct {
	gateway string
	number  int
	path    string
}

func fileAt(dir, gateway string, number int) file {
	return file{gateway, number, filepath.Join(dir, fmt.Sprintf("%s-%06d.jsonl", gateway, number))}
}

// name is the file's name without its folder.
func (f file) name() string { return filepath.Base(f.path) }

// files returns the files of records in a folder, by gateway and number. A
// folder that does not exist has none.
func files(dir string) ([]file, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var found []file
	for _, entry := range entries {
		match := filePattern.FindStringSubmatch(entry.Name())
		if match == nil {
			continue
		}
		number, err := strconv.Atoi(match[2])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", entry.Name(), err)
		}
		found = append(found, file{match[1], number, filepath.Join(dir, entry.Name())})
	}
	slices.SortFunc(found, func(a, b file) int {
		return cmp.Or(strings.Compare(a.gateway, b.gateway), cmp.Compare(a.number, b.number))
	})
	return found, nil
}

// A line is one line of a file of records, without its newline. It is valid
// until the next one is read.
type line struct {
	number int
	text   []byte
	// complete is false for a last line that has no newline: a writer was
	// interrupted, or is at work.
	complete bool
	// long says that text is only the first part of a line over maxLine.
	long bool
}

// scan calls yield for each line of r and returns how many bytes it took in
// complete lines.
func scan(r io.Reader, yield func(line) error) (taken int64, err error) {
	reader := bufio.NewReaderSize(r, maxLine)
	for number := 1; ; number++ {
		text, err := reader.ReadSlice('\n')
		size, long := int64(len(text)), errors.Is(err, bufio.ErrBufferFull)
		if long {
			text = bytes.Clone(text)
		}
		for errors.Is(err, bufio.ErrBufferFull) {
			var rest []byte
			rest, err = reader.ReadSlice('\n')
			size += int64(len(rest))
		}
		complete := err == nil
		if err != nil && !errors.Is(err, io.EOF) {
			return taken, err
		}
		if size == 0 {
			return taken, nil
		}
		if err := yield(line{number, bytes.TrimSuffix(text, []byte("\n")), complete, long}); err != nil {
			return taken, err
		}
		if !complete {
			return taken, nil
		}
		taken += size
	}
}

// lastRecord returns the last complete record of a file; ok is false if it has
// none.
func lastRecord(f file) (last Record, ok bool, err error) {
	opened, err := os.Open(f.path)
	if err != nil {
		return Record{}, false, err
	}
	defer func() { _ = opened.Close() }()
	info, err := opened.Stat()
	if err != nil {
		return Record{}, false, err
	}
	// Two lines at most: an incomplete one and the one before.
	from := max(0, info.Size()-2*maxLine)
	if _, err := opened.Seek(from, io.SeekStart); err != nil {
		return Record{}, false, err
	}
	var text []byte
	_, err = scan(opened, func(l line) error {
		if l.complete && (from == 0 || l.number > 1) {
			text = append(text[:0], l.text...)
			ok = true
		}
		return nil
	})
	if err != nil || !ok {
		return Record{}, false, err
	}
	last, err = ParseRecord(text)
	if err != nil {
		return Record{}, false, fmt.Errorf("last record of %s: %w", f.name(), err)
	}
	return last, true, nil
}

// A head is the end of a chain: the number and the hash of the last record.
type head struct {
	seq  uint64
	hash string
}

func headPath(dir, gateway string) string { return filepath.Join(dir, gateway+".head") }

// encode returns the head in the fixed width that lets it be overwritten in
// place.
func (h head) encode() []byte { return fmt.Appendf(nil, "%020d %64s\n", h.seq, h.hash) }

// readHead reads a head; ok is false if there is none. An empty one is that of
// a writer which was interrupted before its first record.
func readHead(dir, gateway string) (h head, ok bool, err error) {
	text, err := os.ReadFile(headPath(dir, gateway))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return head{}, false, nil
	case err != nil:
		return head{}, false, err
	case len(text) == 0:
		return head{}, true, nil
	}
	if n, err := fmt.Sscanf(string(text), "%d %s", &h.seq, &h.hash); n != 2 || err != nil || !bytes.Equal(h.encode(), text) {
		return head{}, false, fmt.Errorf("%s is damaged", filepath.Base(headPath(dir, gateway)))
	}
	return h, true, nil
}
