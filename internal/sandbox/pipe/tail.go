package pipe

import (
	"strings"
	"sync"
)

// TailSize is how many bytes a [Tail] keeps.
const TailSize = 4 << 10

// A Tail keeps the end of what is written to it. The zero value is ready. All
// methods may be called from any goroutine.
type Tail struct {
	mu   sync.Mutex
	kept []byte
	cut  bool
}

// Write keeps the end of b. It never fails.
func (t *Tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(b)
	if over := len(t.kept) + n - TailSize; over > 0 {
		t.cut = true
		if over >= len(t.kept) {
			b = b[over-len(t.kept):]
			t.kept = t.kept[:0]
		} else {
			t.kept = t.kept[:copy(t.kept, t.kept[over:])]
		}
	}
	t.kept = append(t.kept, b...)
	return n, nil
}

// String returns the last lines, at most [TailSize] bytes. A first line that
// was cut is left out, unless it is the only one. Bytes that are no UTF-8 are
// left out too.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := string(t.kept)
	if t.cut {
		if _, rest, ok := strings.Cut(text, "\n"); ok && rest != "" {
			text = rest
		}
	}
	return strings.ToValidUTF8(text, "")
}
