package park_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/dockgate/dockgate/internal/era"
	"github.com/dockgate/dockgate/internal/gateway/park"
	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/principal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ann, bob = principal.Principal{ID: "ann"}, principal.Principal{ID: "bob"} //nolint:gochecknoglobals // constants, but for the language

type call = park.Call[string]

func answers(of map[string]string) func(key string) json.RawMessage {
	return func(key string) json.RawMessage { return json.RawMessage(of[key]) }
}

// asking starts a call that asks once and returns the answer.
func asking(ctx context.Context, wg *sync.WaitGroup, who principal.Principal, same string) *call {
	c := &call{Principal: who, Same: same}
	c.Start(ctx, wg.Go, func(ctx context.Context) (json.RawMessage, error) {
		return c.Ask(ctx, era.Input{Key: "q", Method: era.Elicit})
	})
	return c
}

// parked starts a call and keeps it.
func parked(t *testing.T, lot *park.Lot[string], wg *sync.WaitGroup, who principal.Principal) (*call, string) {
	t.Helper()
	c := asking(t.Context(), wg, who, "same")
	handle, err := lot.Keep(park.Leg[string]{Call: c, Questions: c.Gather(<-c.Questions())})
	if err != nil || !park.IsHandle(handle) || len(handle) < len(park.Prefix)+26 {
		t.Fatalf("Keep() = %q, %v, want a handle of 128 bits", handle, err)
	}
	return c, handle
}

func refused(err error) bool {
	var refusal *jsonrpc.Error
	return errors.As(err, &refusal) && refusal.Code == jsonrpc.CodeInvalidParams
}

func TestAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lot park.Lot[string]
		var wg sync.WaitGroup
		c, handle := parked(t, &lot, &wg, ann)
		<-time.After(park.TTL - time.Second)
		if _, err := lot.Take(handle, bob, "same"); !refused(err) {
			t.Errorf("Take by another principal = %v, want a refusal", err)
		}
		leg, err := lot.Take(handle, ann, "same")
		if err != nil {
			t.Fatalf("Take() = %v, want the leg", err)
		}
		if _, err := lot.Take(handle, ann, "same"); !refused(err) {
			t.Errorf("a second Take = %v, want a refusal", err)
		}
		leg.Answer(answers(map[string]string{"q": `{"x":1}`}))
		<-c.Done()
		if result, err := c.Result(); string(result) != `{"x":1}` || err != nil {
			t.Errorf("Result() = %s, %v, want the answer", result, err)
		}
		wg.Wait()
	})
}

func TestExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lot park.Lot[string]
		var wg sync.WaitGroup
		c, handle := parked(t, &lot, &wg, ann)
		<-time.After(park.TTL)
		synctest.Wait()
		select {
		case <-c.Done():
		default:
			t.Error("a call goes on whose answer did not come")
		}
		if _, err := c.Result(); !errors.Is(err, park.ErrExpired) {
			t.Errorf("Result() = %v, want %v", err, park.ErrExpired)
		}
		if _, err := lot.Take(handle, ann, "same"); !refused(err) {
			t.Errorf("Take of an expired handle = %v, want a refusal", err)
		}
		wg.Wait()
	})
}

func TestOtherRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lot park.Lot[string]
		var wg sync.WaitGroup
		c, handle := parked(t, &lot, &wg, ann)
		if _, err := lot.Take(handle, ann, "other"); !refused(err) {
			t.Errorf("Take for another request = %v, want a refusal", err)
		}
		<-c.Done() // it was given up
		if _, err := lot.Take(handle, ann, "same"); !refused(err) {
			t.Errorf("Take after a misuse = %v, want a refusal", err)
		}
		wg.Wait()
	})
}

// A call may end without the answer; then the retry brings its result.
func TestEndsWithoutAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lot park.Lot[string]
		var wg sync.WaitGroup
		c := &call{Principal: ann, Same: "same"}
		c.Start(t.Context(), wg.Go, func(ctx context.Context) (json.RawMessage, error) {
			ctx, cancel := context.WithTimeout(ctx, time.Second) // the server withdraws its question
			defer cancel()
			if _, err := c.Ask(ctx, era.Input{}); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Ask() = %v, want the end of its context", err)
			}
			return json.RawMessage(`"done"`), nil
		})
		handle, err := lot.Keep(park.Leg[string]{Call: c, Questions: c.Gather(<-c.Questions())})
		if err != nil {
			t.Fatal(err)
		}
		<-c.Done()
		leg, err := lot.Take(handle, ann, "same")
		if err != nil || leg.Call != c {
			t.Fatalf("Take of a call that has ended = %v, want its leg", err)
		}
		leg.Answer(answers(map[string]string{"": "{}"}))
		if result, err := c.Result(); string(result) != `"done"` || err != nil {
			t.Errorf("Result() = %s, %v, want what came of the call", result, err)
		}
		wg.Wait()
	})
}

// What is asked at the same time is asked together, and again as long as an
// answer is missing.
func TestGathers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lot park.Lot[string]
		var wg sync.WaitGroup
		c := &call{Principal: ann, Same: "same"}
		got := make([]string, 3)
		c.Start(t.Context(), wg.Go, func(ctx context.Context) (json.RawMessage, error) {
			var asking sync.WaitGroup
			for i := range got {
				asking.Go(func() {
					<-time.After(time.Duration(i) * 20 * time.Millisecond)
					answer, err := c.Ask(ctx, era.Input{Key: "q"})
					if err != nil {
						t.Errorf("Ask() = %v, want an answer", err)
					}
					got[i] = string(answer)
				})
			}
			withdrawn, cancel := context.WithTimeout(ctx, 70*time.Millisecond)
			defer cancel()
			if answer, err := c.Ask(withdrawn, era.Input{Key: "q"}); err == nil {
				t.Errorf("Ask() = %s, want the end of its context", answer)
			}
			asking.Wait()
			return json.RawMessage(`"done"`), nil
		})
		questions := c.Gather(<-c.Questions())
		var keys []string
		for _, question := range questions {
			keys = append(keys, question.Input.Key)
		}
		if want := []string{"q", "q-2", "q-3"}; !slices.Equal(keys, want) {
			t.Fatalf("asked %q together, want %q, without what was withdrawn", keys, want)
		}
		for _, given := range []map[string]string{{"q": "1", "other": "0"}, {"q": "0", "q-3": "3"}, {"q-2": "2"}} {
			handle, err := lot.Keep(park.Leg[string]{Call: c, Questions: questions})
			if err != nil {
				t.Fatal(err)
			}
			leg, err := lot.Take(handle, ann, "same")
			if err != nil {
				t.Fatal(err)
			}
			if open := leg.Answer(answers(given)); len(open) > 0 {
				questions = c.Gather(open...)
			}
		}
		<-c.Done()
		slices.Sort(got)
		if want := []string{"1", "2", "3"}; !slices.Equal(got, want) {
			t.Errorf("answers = %q, want %q", got, want)
		}
		if again := c.Gather(questions...); again != nil {
			t.Errorf("Gather after the end = %v, want nothing", again)
		}
		wg.Wait()
	})
}

func TestBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lot park.Lot[string]
		var wg sync.WaitGroup
		calls := make([]*call, 0, park.MostEach)
		for range park.MostEach {
			c, _ := parked(t, &lot, &wg, ann)
			calls = append(calls, c)
		}
		one := asking(t.Context(), &wg, ann, "same")
		if handle, err := lot.Keep(park.Leg[string]{Call: one, Questions: one.Gather(<-one.Questions())}); err == nil {
			t.Errorf("Keep beyond %d of one principal = %q, want an error", park.MostEach, handle)
		}
		other, _ := parked(t, &lot, &wg, bob) // has places of their own
		for _, c := range append(calls, one, other) {
			c.GiveUp(nil)
		}
		<-time.After(park.TTL + time.Second)
		again, _ := parked(t, &lot, &wg, ann) // expired ones make room
		again.GiveUp(nil)
		wg.Wait()
	})
}

func TestSeal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seal := park.NewSeal()
		own := "state <&> \u2028 of the server"
		bound := park.Sealed{Principal: ann, Same: "same", Server: "one"}
		with := bound
		with.State = &own
		closed := seal.Close(with)
		if !park.IsSealed(closed) || park.IsHandle(closed) {
			t.Errorf("Close() = %q, want a sealed state and no handle", closed)
		}
		if opened, err := seal.Open(closed, bound); err != nil || opened.State == nil || *opened.State != own {
			t.Errorf("Open() = %+v, %v, want %q", opened, err, own)
		}
		if opened, err := seal.Open(seal.Close(bound), bound); err != nil || opened.State != nil {
			t.Errorf("Open of no state = %+v, %v, want none", opened, err)
		}
		flipped := []byte(closed)
		flipped[len(flipped)-1] ^= 1
		other := func(change func(*park.Sealed)) park.Sealed { s := bound; change(&s); return s }
		for name, tt := range map[string]struct {
			state    string
			expected park.Sealed
		}{
			"another principal": {closed, other(func(s *park.Sealed) { s.Principal = bob })},
			"another request":   {closed, other(func(s *park.Sealed) { s.Same = "other" })},
			"another server":    {closed, other(func(s *park.Sealed) { s.Server = "two" })},
			"another gateway":   {park.NewSeal().Close(with), bound},
			"changed":           {string(flipped), bound},
			"cut":               {closed[:len(closed)/2], bound},
			"none of ours":      {"what the server said", bound},
			"not base64":        {strings.Replace(closed, ":", ":%", 1), bound},
			"empty":             {"", bound},
		} {
			if opened, err := seal.Open(tt.state, tt.expected); !refused(err) {
				t.Errorf("Open of %s = %+v, %v, want a refusal", name, opened, err)
			}
		}
		<-time.After(park.TTL + time.Second)
		if _, err := seal.Open(closed, bound); !refused(err) {
			t.Errorf("Open after %v = %v, want a refusal", park.TTL, err)
		}
	})
}
