package door_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dockgate/dockgate/internal/remote/door"
)

func TestEvents(t *testing.T) {
	const limit = 64
	long := strings.Repeat("a", limit)
	tests := []struct {
		stream string
		want   []string
		whole  bool // is read to its end
	}{
		{"", nil, true},
		{"data: {}\n\n", []string{"|0s|{}"}, true},
		{"data:{}\r\n\r\n", []string{"|0s|{}"}, true},
		{"id: 1\nretry: 500\ndata: \n\nid: 2\ndata: {}\n\n", []string{"1|500ms|", "2|0s|{}"}, true},
		{"event: message\ndata: [1,\ndata: 2]\n\n", []string{"|0s|[1,\n2]"}, true},
		{": a comment\n\n\n\ndata: 1\n\n", []string{"|0s|1"}, true},
		{"data\n\n", []string{"|0s|"}, true},
		{"id: 1\n\ndata: 2\n\n", []string{"1|0s|", "|0s|2"}, true},
		{"id: a\x00b\nretry: soon\ndata: 1\n\n", []string{"|0s|1"}, true},
		{"retry: 999999999\n\n", []string{"|1m0s|"}, true},
		{"data: 1\n\ndata: cut off", []string{"|0s|1"}, true},
		{"data: 1\n\ndata: cut off\n", []string{"|0s|1"}, true},
		{"data: 1\n\ndata: " + long + "\n\ndata: 3\n\n", []string{"|0s|1"}, false},
		{"data: 1\n\n" + strings.Repeat("data: 22\n", limit) + "\n", []string{"|0s|1"}, false},
		{strings.Repeat(": alive\n\n", limit) + "data: 1\n\n", []string{"|0s|1"}, true},
	}
	for _, tt := range tests {
		got, err := door.ReadEvents(strings.NewReader(tt.stream), limit)
		if diff := cmp.Diff(tt.want, got, cmpopts.EquateEmpty()); diff != "" || errors.Is(err, io.EOF) != tt.whole {
			t.Errorf("ReadEvents(%q) ends with %v, whole %v (-want +got):\n%s", tt.stream, err, tt.whole, diff)
		}
	}
}

// FuzzEvents holds that what is read of a stream is within its bounds, whatever
// comes, and that one event never takes anything from the next.
func FuzzEvents(f *testing.F) {
	for _, seed := range []string{"", "data: {}\n\n", "id: 1\r\nretry: 5\r\ndata: \r\n\r\n", ": x\n\ndata: a\ndata: b\n\n", "data: a\x00\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, stream string) {
		const limit = 1 << 10
		got, err := door.ReadEvents(strings.NewReader(stream), limit)
		if err == nil {
			t.Errorf("ReadEvents(%q) has no end", stream)
		}
		for _, event := range got {
			if len(event) > 2*limit {
				t.Errorf("ReadEvents(%q) = an event of %d bytes, want at most %d", stream, len(event), 2*limit)
			}
		}
		if !errors.Is(err, io.EOF) {
			return // too long
		}
		again, _ := door.ReadEvents(strings.NewReader(stream+"\n\ndata: last\n\n"), limit)
		if len(again) == 0 || !strings.HasSuffix(again[len(again)-1], "last") {
			t.Errorf("ReadEvents(%q and one more) = %q, want the one more at the end", stream, again)
		}
	})
}
