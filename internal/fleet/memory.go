package fleet

import "fmt"

// A MemoryError is a server that was ended by the kernel, because it wanted
// more memory than it has. The next call starts it again.
type MemoryError struct {
	Server string
	// Limit is in bytes.
	Limit int64
}

// Error names the limit and the setting that raises it.
func (e *MemoryError) Error() string {
	return fmt.Sprintf("%q passed its %s limit; raise limits.memory", e.Server, size(e.Limit))
}

// size writes bytes as catalogs do: 500 MB are 500 times 2^20.
func size(bytes int64) string {
	if bytes >= 1<<30 && bytes%(1<<30) == 0 {
		return fmt.Sprintf("%d GB", bytes>>30)
	}
	return fmt.Sprintf("%d MB", bytes>>20)
}
