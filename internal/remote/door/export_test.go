package door

import (
	"bufio"
	"io"
	"net/url"
)

// Check says whether an address may be connected to for a server at a URL, or
// for one at a public place if it is nil.
func Check(at *url.URL, address string) error {
	var g guard
	if at != nil {
		g.granted = named(at)
	}
	return g.control("tcp", address, nil)
}

// ReadEvents returns the id, the pause and the data of each event of a stream.
func ReadEvents(in io.Reader, limit int) (events []string, err error) {
	r := &Events{in: bufio.NewReader(in), limit: limit}
	for {
		e, err := r.Next()
		if err != nil {
			return events, err
		}
		events = append(events, e.ID+"|"+e.Retry.String()+"|"+string(e.Data))
	}
}
