package audit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

// DefaultMaxSize is the size in bytes at which a file of records ends.
const DefaultMaxSize = 16 << 20

// Options are what a [Writer] needs.
type Options struct {
	// Dir is the audit folder. It is made if it is missing, for its owner only.
	Dir string
	// Gateway is the id of this gateway: 1 to 64 of [A-Za-z0-9_-].
	Gateway string
	// MaxSize is the size in bytes at which the next file begins; zero means
	// [DefaultMaxSize].
	MaxSize int64
}

// ErrClosed says that the writer was closed.
var ErrClosed = errors.New("audit record is closed")

// A LockedError says that another process writes the record of this gateway.
type LockedError struct{ Gateway string }

// Error names the gateway.
func (e *LockedError) Error() string {
	return fmt.Sprintf("audit record of gateway %q is being written by another process", e.Gateway)
}

// A DamagedError says that a chain cannot be continued because its end cannot
// be read.
type DamagedError struct {
	Dir string
	Err error
}

// Error says what is damaged.
func (e *DamagedError) Error() string { return "audit record: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *DamagedError) Unwrap() error { return e.Err }

// Hint says how to look at it, and how to go on.
func (e *DamagedError) Hint() string {
	return fmt.Sprintf("see what was changed with `dockgate audit verify`; to go on with a new record, move %s away", e.Dir)
}

// A Writer appends to the record of one gateway. It is safe for concurrent
// use. It must be closed.
type Writer struct {
	dir     string
	gateway string
	maxSize int64
	lock    *flock.Flock

	mu sync.Mutex
	// end is where the next record goes; nil before the first file.
	end    *end
	number int
	head   *os.File
	last   head
	// headAt is when the head was written, later the write that is due, and
	// lateErr what came of the last one.
	headAt  time.Time
	later   *time.Timer
	lateErr error
	closed  bool
}

// An end is the open end of a file of records.
type end struct {
	file *os.File
	// size is the length of the complete records.
	size int64
	// torn says that a part of a record stands behind them. Nothing may follow
	// it in this file; without a newline it is no record.
	torn bool
}

func (e *end) write(text []byte) error {
	n, err := e.file.Write(text)
	if err != nil {
		e.torn = n > 0
		return err
	}
	e.size += int64(n)
	return nil
}

// Open begins a new file of the gateway's record and continues its chain. It
// returns a [LockedError] if another process has it open, and a [DamagedError]
// if its end cannot be read. If records are missing from the end, the first
// record of the new file says so, for good.
func Open(o Options) (*Writer, error) {
	if !gatewayPattern.MatchString(o.Gateway) {
		return nil, fmt.Errorf("audit record: gateway id %q: want 1 to 64 of [A-Za-z0-9_-]", o.Gateway)
	}
	if o.MaxSize == 0 {
		o.MaxSize = DefaultMaxSize
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("audit record: %w", err)
	}
	lock := flock.New(filepath.Join(o.Dir, o.Gateway+".lock"), flock.SetPermissions(0o600))
	locked, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("audit record: %w", err)
	}
	if !locked {
		return nil, &LockedError{Gateway: o.Gateway}
	}
	w := &Writer{dir: o.Dir, gateway: o.Gateway, maxSize: o.MaxSize, lock: lock}
	if err := w.resume(); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

// resume finds the end of the chain and begins the next file there.
func (w *Writer) resume() error {
	all, err := files(w.dir)
	if err != nil {
		return fmt.Errorf("audit record: %w", err)
	}
	for _, f := range all {
		if f.gateway != w.gateway {
			continue
		}
		w.number = f.number
		last, ok, err := lastRecord(f)
		if err != nil {
			return &DamagedError{Dir: w.dir, Err: err}
		}
		if ok {
			w.last = head{last.Seq, last.Hash}
		}
	}
	remembered, ok, err := readHead(w.dir, w.gateway)
	if err != nil {
		return &DamagedError{Dir: w.dir, Err: err}
	}
	detail := make(map[string]string)
	if ok && remembered.seq > w.last.seq {
		detail[detailMissing] = strconv.FormatUint(remembered.seq, 10)
	}
	opened, err := os.OpenFile(headPath(w.dir, w.gateway), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("audit record: %w", err)
	}
	w.head = opened
	return w.next(detail)
}

// detailMissing is the detail of an opening record that says up to which
// number records were there before, and are not now.
const detailMissing = "missing_up_to"

// Append writes r as the next record. If it returns an error, the record is
// not there, or not safely, and what it was for must not happen. The next
// Append tries again.
func (w *Writer) Append(r Record) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return ErrClosed
	}
	if w.end.torn || w.end.size >= w.maxSize {
		if err := w.next(nil); err != nil {
			return err
		}
	}
	return w.append(w.end, r)
}

// append writes r at the end of a file. w.mu is held, or w not yet shared.
func (w *Writer) append(e *end, r Record) error {
	if r.Time.IsZero() {
		r.Time = time.Now()
	}
	r.Time = r.Time.UTC()
	r.Seq, r.Gateway, r.Prev = w.last.seq+1, w.gateway, w.last.hash
	text, hash, err := encode(r)
	if err != nil {
		return fmt.Errorf("audit record: %w", err)
	}
	if err := e.write(text); err != nil {
		return fmt.Errorf("audit record: %w", err)
	}
	w.last = head{r.Seq, hash}
	return w.moveHead()
}

// headEvery bounds how often the head is written, and so how far it lags.
const headEvery = 10 * time.Millisecond

// moveHead writes the head now, or soon if it was written just before. An
// error of the later write is that of the next record. w.mu is held, or w not
// yet shared.
func (w *Writer) moveHead() error {
	if w.later != nil {
		return w.lateErr
	}
	if wait := headEvery - time.Since(w.headAt); wait > 0 && w.lateErr == nil {
		w.later = time.AfterFunc(wait, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.later != nil && !w.closed {
				w.later = nil
				w.lateErr = w.writeHead()
			}
		})
		return nil
	}
	w.lateErr = w.writeHead()
	return w.lateErr
}

func (w *Writer) writeHead() error {
	w.headAt = time.Now()
	if _, err := w.head.WriteAt(w.last.encode(), 0); err != nil {
		return fmt.Errorf("audit record: %w", err)
	}
	return nil
}

// next begins the next file, whose first record says where the chain goes on.
// If that cannot be written, the file goes again and the old one stays the
// current one. w.mu is held, or w not yet shared.
func (w *Writer) next(detail map[string]string) error {
	f := fileAt(w.dir, w.gateway, w.number+1)
	opened, err := os.OpenFile(f.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("audit record: %w", err)
	}
	begun := &end{file: opened}
	err = w.append(begun, Record{Kind: KindOpen, Detail: detail})
	if err != nil && begun.size == 0 {
		err = errors.Join(err, opened.Close())
		if removed := os.Remove(f.path); removed != nil {
			w.number++
			err = errors.Join(err, removed)
		}
		return err
	}
	previous := w.end
	w.end = begun
	w.number++
	if previous != nil {
		err = errors.Join(err, previous.file.Close())
	}
	return err
}

// Close ends the record and gives up its lock. It may be called twice.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.closed = true
	var err error
	if w.end != nil {
		err = w.end.file.Close()
	}
	if w.later != nil {
		w.later.Stop()
		err = errors.Join(err, w.writeHead())
	}
	if w.head != nil {
		err = errors.Join(err, w.head.Close())
	}
	return errors.Join(err, w.lock.Close())
}
