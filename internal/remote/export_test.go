package remote

import "io"

// Events returns the id, the pause and the data of each event of a stream.
func Events(in io.Reader, limit int) (events []string, err error) {
	r := newEventReader(in, limit)
	for {
		e, err := r.next()
		if err != nil {
			return events, err
		}
		events = append(events, e.id+"|"+e.retry.String()+"|"+string(e.data))
	}
}
