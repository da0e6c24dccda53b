package fleet_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dockgate/dockgate/internal/fleet"
	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest"
)

// asker is a server that answers a call with what its client answered it.
func asker(_ context.Context, c sandboxtest.Container) int {
	in, out := jsonrpc.NewReader(c.Stdin, jsonrpc.ReaderOptions{}), jsonrpc.NewWriter(c.Stdout)
	calls := map[string]json.RawMessage{}
	for {
		m, err := in.Read()
		if err != nil {
			return 0
		}
		answer := jsonrpc.Message{ID: m.ID}
		switch {
		case m.Kind() == jsonrpc.Response:
			said := string(m.Result)
			if said == `{"action":"cancel"}` {
				continue // nobody waits for an answer
			}
			if m.Error != nil {
				said = fmt.Sprintf(`{"code":%d,"message":%q}`, m.Error.Code, m.Error.Message)
			}
			answer = jsonrpc.Message{ID: calls[string(m.ID)], Result: json.RawMessage(said)}
		case m.Method == "initialize":
			answer.Result = json.RawMessage(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"0"}}`)
		case m.Method == "tools/list":
			answer.Result = json.RawMessage(`{"tools":[{"name":"ask"}]}`)
		case m.Method == "tools/call":
			var name string
			_ = json.Unmarshal(jsonrpc.Lookup(m.Params, "name"), &name)
			if name == "hang" {
				continue
			}
			calls["1"+string(m.ID)] = m.ID
			answer = jsonrpc.Message{ID: json.RawMessage("1" + string(m.ID)), Method: name, Params: json.RawMessage(`{"a":1.0}`)}
		case m.ID == nil:
			continue
		default:
			answer.Error = &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "no"}
		}
		if out.Write(answer) != nil {
			return 1
		}
	}
}

// by returns the order as a client gives it that answers questions after a while.
func by(client string, after time.Duration, o fleet.Order) fleet.Order {
	o.From.Session = client
	o.Ask = func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
		select {
		case <-time.After(after):
			return json.RawMessage(fmt.Sprintf(`{"by":%q,"method":%q,"params":%s}`, client, method, params)), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return o
}

func inAskingWorld(t *testing.T, run func(*testing.T, *world, fleet.Order)) {
	t.Helper()
	inWorld(t, func(t *testing.T, w *world) {
		w.fake.Servers["asker"] = asker
		run(t, w, w.order("a", "asker"))
	})
}

const elicit = "elicitation/create"

func TestAskReachesTheCaller(t *testing.T) {
	inAskingWorld(t, func(_ *testing.T, w *world, o fleet.Order) {
		w.answers(by("ann", 0, o), elicit, `{"by":"ann","method":"elicitation/create","params":{"a":1.0}}`)
		w.answers(by("bob", 0, o), "roots/list", `{"by":"bob","method":"roots/list","params":{"a":1.0}}`)
		w.answers(o, elicit, `{"code":-32601,"message":"the client cannot be asked: elicitation/create"}`)
		w.expectStarted(1)
	})
}

// While a person thinks, the server's time does not run; that of the whole
// call does.
func TestAskPausesTheLimit(t *testing.T) {
	inAskingWorld(t, func(t *testing.T, w *world, o fleet.Order) {
		o.Limits = fleet.Limits{Call: 10 * time.Second, CallMax: 5 * time.Minute}
		w.answers(by("ann", 4*time.Minute, o), elicit, `{"by":"ann","method":"elicitation/create","params":{"a":1.0}}`)
		took := took(func() {
			_, err := w.call(t.Context(), by("ann", 6*time.Minute, o), elicit)
			var late *fleet.TimeoutError
			if !errors.As(err, &late) || late.Setting != "call_max" {
				t.Errorf("Call() = %v, want the limit of the whole call", err)
			}
		})
		if took != 5*time.Minute {
			t.Errorf("the call took %v, want 5 m", took)
		}
	})
}

// What two clients share cannot be attributed: it is refused, and the server
// is known from then on.
func TestAskOfTwoClients(t *testing.T) {
	inAskingWorld(t, func(t *testing.T, w *world, o fleet.Order) {
		first := w.starts(by("ann", 0, o), "hang")
		if w.fleet.Asks("a") {
			t.Error("Asks() before it has asked, want false")
		}
		got, err := w.call(t.Context(), by("bob", 0, o), elicit)
		if err != nil || !strings.Contains(got, "which of 2 clients") {
			t.Errorf("Call() = %s, %v, want what the server was refused with", got, err)
		}
		if !w.fleet.Asks("a") {
			t.Error("Asks() = false after two clients shared it")
		}
		w.answers(by("bob", 0, scoped(o, "bob/1")), elicit, `{"by":"bob","method":"elicitation/create","params":{"a":1.0}}`)
		_, _ = w.fleet.Stop(t.Context(), "a")
		if err := <-first; !errors.Is(err, fleet.ErrStopped) {
			t.Errorf("the call that hung = %v, want %v", err, fleet.ErrStopped)
		}
	})
}

// Two calls of one client are of that client.
func TestAskOfOneClientTwice(t *testing.T) {
	inAskingWorld(t, func(t *testing.T, w *world, o fleet.Order) {
		first := w.starts(by("ann", 0, o), "hang")
		w.answers(by("ann", 0, o), elicit, `{"by":"ann","method":"elicitation/create","params":{"a":1.0}}`)
		_, _ = w.fleet.Stop(t.Context(), "a")
		if err := <-first; !errors.Is(err, fleet.ErrStopped) {
			t.Errorf("the call that hung = %v, want %v", err, fleet.ErrStopped)
		}
	})
}

// Whoever leaves decides nothing: the server is told so, and the call is over.
func TestAskEndsWithItsCall(t *testing.T) {
	inAskingWorld(t, func(t *testing.T, w *world, o fleet.Order) {
		asked := make(chan error, 1)
		o.From.Session = "ann"
		o.Ask = func(ctx context.Context, _ string, _ json.RawMessage) (json.RawMessage, error) {
			<-ctx.Done()
			asked <- ctx.Err()
			return nil, ctx.Err()
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := w.call(ctx, o, elicit)
			ended <- err
		}()
		synctest.Wait()
		if running := w.fleet.Running(); len(running) != 1 || running[0].Calls != 1 {
			t.Errorf("Running() = %+v while a question is open, want one call", running)
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Call() = %v, want the end of its context", err)
		}
		if err := <-asked; !errors.Is(err, context.Canceled) {
			t.Errorf("the question ended with %v, want with its call", err)
		}
		// The server goes on, and is idle again.
		w.answers(by("ann", 0, o), "roots/list", `{"by":"ann","method":"roots/list","params":{"a":1.0}}`)
		pass(fleet.DefaultIdle)
		w.expectRunning()
	})
}

// without returns the order as it comes from a client without a session, whose
// programs nobody can tell apart.
func without(call string, after time.Duration, o fleet.Order) fleet.Order {
	o = by(call, after, o)
	o.From = fleet.From{Principal: "ann", Session: "all", Call: call}
	return o
}

// A call that waits for an answer asks nothing more: what is asked then is of
// another.
func TestAskBesideOneThatWaits(t *testing.T) {
	inAskingWorld(t, func(t *testing.T, w *world, o fleet.Order) {
		first := w.starts(without("one", time.Minute, o), elicit)
		pass(fleet.AtOnce)
		w.answers(without("two", 0, o), elicit, `{"by":"two","method":"elicitation/create","params":{"a":1.0}}`)
		pass(time.Minute)
		if err := <-first; err != nil {
			t.Errorf("the call that waited = %v, want its answer", err)
		}
		if w.fleet.Asks("a") {
			t.Error("Asks() though it was known who was asked, want false")
		}
		w.expectStarted(1)
	})
}

// Where there are no sessions two calls may be of two programs. What cannot be
// attributed is refused; from then on each call that can be asked has a server
// to itself, and the others share one.
func TestAskWithoutSessions(t *testing.T) {
	inAskingWorld(t, func(t *testing.T, w *world, o fleet.Order) {
		hanging := []<-chan error{w.starts(without("one", 0, o), "hang")}
		got, err := w.call(t.Context(), without("two", 0, o), elicit)
		if err != nil || !strings.Contains(got, "which of 2 clients") {
			t.Errorf("Call() = %s, %v, want what the server was refused with", got, err)
		}
		if !w.fleet.Asks("a") {
			t.Error("Asks() = false after two calls could not be told apart")
		}
		o.Scope = "ann/all"
		hanging = append(hanging, w.starts(without("three", 0, o), "hang"))
		w.answers(without("four", 0, o), elicit, `{"by":"four","method":"elicitation/create","params":{"a":1.0}}`)
		w.answers(without("five", 0, o), elicit, `{"by":"five","method":"elicitation/create","params":{"a":1.0}}`)
		w.expectStarted(3) // the first that is free is taken again
		mute := without("six", 0, o)
		mute.Ask = nil
		hanging = append(hanging, w.starts(mute, "hang"))
		mute.From.Call = "seven"
		w.answers(mute, elicit, `{"code":-32601,"message":"the client cannot be asked: elicitation/create"}`)
		w.expectStarted(4)
		_, _ = w.fleet.Stop(t.Context(), "a")
		for _, ended := range hanging {
			if err := <-ended; !errors.Is(err, fleet.ErrStopped) {
				t.Errorf("a call that hung = %v, want %v", err, fleet.ErrStopped)
			}
		}
	})
}
