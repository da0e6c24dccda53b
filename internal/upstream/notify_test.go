package upstream_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/upstream"
)

// A record remembers notifications.
type record struct {
	mu  sync.Mutex
	got []string
}

func (r *record) add(method string, params json.RawMessage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = append(r.got, method+" "+string(params))
}

func (r *record) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

func TestNotificationsComeInOrderAndBeforeTheResult(t *testing.T) {
	var r record
	o := options(upstream.Legacy)
	o.Notify = r.add
	s, p := connect(t, o)
	for round := range 100 {
		id := round + 2
		played := start(func() {
			p.play(fmt.Sprintf(`
				> {"id":%d,"method":"m"}
				< {"method":"notifications/message","params":{"level":"info", "data":%[1]d}}
				< {"method":"notifications/resources/updated","params":{"uri":"a:%[1]d"}}
				< {"id":%[1]d,"result":{}}
			`, id))
		})
		if _, err := s.Call(t.Context(), "m", nil, nil); err != nil {
			t.Fatal(err)
		}
		got := r.all()
		want := []string{
			fmt.Sprintf(`notifications/message {"level":"info", "data":%d}`, id),
			fmt.Sprintf(`notifications/resources/updated {"uri":"a:%d"}`, id),
		}
		if diff := cmp.Diff(want, got[2*round:]); diff != "" {
			t.Fatalf("notifications when the call returned (-want +got):\n%s", diff)
		}
		played()
	}
}

func TestSlowNotifyHoldsNobodyUpForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var r record
		o := options(upstream.Legacy)
		o.Notify = func(method string, params json.RawMessage) {
			<-release
			r.add(method, params)
		}
		s, p := connect(t, o)
		const flood = 5000
		played := start(func() {
			p.play(`> {"id":2,"method":"m"}`)
			for i := range flood {
				p.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/message","params":%d}`, i))
				p.send(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
				p.send(`{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}`)
			}
			p.play(`< {"id":2,"result":{}}`)
		})
		begin := time.Now()
		if _, err := s.Call(t.Context(), "m", nil, nil); err != nil {
			t.Errorf("Call() = %v", err)
		}
		if took := time.Since(begin); took != 100*time.Millisecond {
			t.Errorf("Call() took %v behind a stuck Notify, want 100ms", took)
		}
		played()
		close(release)
		synctest.Wait()
		got := r.all()
		counts := make(map[string]int)
		last := -1
		for _, line := range got {
			method, params, _ := strings.Cut(line, " ")
			counts[method]++
			var n int
			if _, err := fmt.Sscan(params, &n); method == "notifications/message" {
				if err != nil || n <= last {
					t.Errorf("message %s after %d, want them in order", params, last)
				}
				last = n
			}
		}
		messages := counts["notifications/message"]
		if dropped := s.Stats().Notifications; messages < 1000 || messages > 1024+1 || int(dropped)+messages != flood {
			t.Errorf("%d messages delivered and %d counted as dropped, want 1024 or so of %d", messages, dropped, flood)
		}
		for _, method := range []string{"notifications/tools/list_changed", "notifications/prompts/list_changed"} {
			if n := counts[method]; n != 1 && n != 2 {
				t.Errorf("%s delivered %d times, want them as one", method, n)
			}
		}
	})
}

func TestNotificationsBeforeTheEndAreDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r record
		o := options(upstream.Legacy)
		o.Notify = r.add
		s, p := connect(t, o)
		p.play("< {\"method\":\"notifications/message\",\"params\":1}\n< {\"method\":\"notifications/message\",\"params\":2}\nEOF")
		<-s.Done()
		synctest.Wait()
		want := []string{"notifications/message 1", "notifications/message 2"}
		if diff := cmp.Diff(want, r.all()); diff != "" {
			t.Errorf("notifications (-want +got):\n%s", diff)
		}
	})
}

// FuzzServerOutput holds that nothing a server writes breaks the session: it
// ends with the stream, and leaves no goroutine.
func FuzzServerOutput(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":1}}` + "\n"))
	f.Add([]byte(`{"jsonrpc":"2.0","id":2,"result":{}}` + "\n" + `[{"jsonrpc":"2.0","id":"a","method":"ping"}]` + "\n"))
	f.Add([]byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":[1]}}` + "\n"))
	f.Fuzz(func(t *testing.T, output []byte) {
		o := options(upstream.Legacy)
		o.MaxLine = 1 << 12
		o.Notify = func(string, json.RawMessage) {}
		o.Serve = func(_ context.Context, _ string, params json.RawMessage) (json.RawMessage, error) { return params, nil }
		s, p := connect(t, o)
		read := start(func() { _, _ = io.Copy(io.Discard, p.lines) })
		written := start(func() {
			_, _ = p.Write(output)
			_ = p.Close()
		})
		_, err := s.Call(t.Context(), "m", nil, func(json.RawMessage) {})
		<-s.Done()
		var lost *upstream.LostError
		if err != nil && !errors.As(err, &lost) && !bytes.Contains(output, []byte("2")) {
			t.Errorf("Call() = %v, want the answer's error or a LostError", err)
		}
		written()
		if err := s.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
		read()
	})
}
