package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/upstream"
)

// TestParamsOnTheWire holds what of a caller's params reaches a server.
func TestParamsOnTheWire(t *testing.T) {
	const odd = `"name":"x","arguments":{"b":9007199254740993,"a":1e400,"b":"<>&` + "\u2028" + `\u0000","z":null}`
	const hop = `"io.modelcontextprotocol/protocolVersion":"1","io.modelcontextprotocol/clientCapabilities":[],` +
		`"io.modelcontextprotocol/clientInfo":{},"io.modelcontextprotocol/subscriptionId":1,"progressToken":"theirs"`
	const level = `"io.modelcontextprotocol/logLevel":"debug"`
	const kept = `"traceparent":"00-1","vendor.example/x":{"b":1,"a":2,"a":3}`
	tests := []struct {
		name, params, legacy, modern string
	}{
		{"none", ``, ``, `{"_meta":{META}}`},
		{"empty", `{}`, `{}`, `{"_meta":{META}}`},
		{"verbatim", `{` + odd + `,"more":[1, 2]}`, `{` + odd + `,"more":[1, 2]}`, `{` + odd + `,"more":[1, 2],"_meta":{META}}`},
		{"empty _meta", `{"_meta":{},` + odd + `}`, `{"_meta":{},` + odd + `}`, `{"_meta":{META},` + odd + `}`},
		{"hop keys", `{` + odd + `,"_meta":{` + hop + `}}`, `{` + odd + `,"_meta":{}}`, `{` + odd + `,"_meta":{META}}`},
		{"log level", `{"_meta":{` + level + `}}`, `{"_meta":{}}`, `{"_meta":{` + level + `,META}}`},
		{
			"capabilities of another client", `{"_meta":{"io.modelcontextprotocol/clientCapabilities":{"roots":{}}}}`, `{"_meta":{}}`,
			`{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"roots":{}},` +
				`"io.modelcontextprotocol/clientInfo":{"name":"gate","version":"1"}}}`,
		},
		{"others are kept", `{"_meta":{"a":1,` + hop + `,` + kept + `},"x":1}`, `{"_meta":{"a":1,` + kept + `},"x":1}`, `{"_meta":{"a":1,` + kept + `,META},"x":1}`},
		{"escaped names hide nothing", `{"\u005fmeta":{"progress\u0054oken":1,"v":1}}`, `{"_meta":{"v":1}}`, `{"_meta":{"v":1,META}}`},
		{"repeated _meta", `{"_meta":{"v":1},"x":1,"_meta":{"w":2}}`, `{"x":1,"_meta":{"w":2}}`, `{"x":1,"_meta":{"w":2,META}}`},
		{"_meta that is none", `{"_meta":null,"x":1}`, `{"_meta":{},"x":1}`, `{"_meta":{META},"x":1}`},
		{"_meta deeper in is data", `{"arguments":{"_meta":{"progressToken":1}}}`, `{"arguments":{"_meta":{"progressToken":1}}}`, `{"arguments":{"_meta":{"progressToken":1}},"_meta":{META}}`},
		{"line breaks", "{\n \"x\": \"a b\",\r\n \"y\": [ 1 ]\n}\n", `{"x":"a b","y":[1]}`, `{"x":"a b","y":[1],"_meta":{META}}`},
	}
	for _, era := range []upstream.Era{upstream.Legacy, upstream.Modern} {
		s, p := connect(t, options(era))
		for i, test := range tests {
			t.Run(string(era)+"/"+test.name, func(t *testing.T) {
				id := i + 2
				want := test.legacy
				if era == upstream.Modern {
					want = test.modern
				}
				if want != "" {
					want = `,"params":` + want
				}
				const result = `{"z":9007199254740993, "a":"<>&` + "\u2028" + `","a":1e400,"unknown":{}}`
				played := start(func() {
					p.play(fmt.Sprintf("> {\"id\":%d,\"method\":\"tools/call\"%s}\n< {\"id\":%d,\"result\":%s}", id, want, id, result))
				})
				got, err := s.Call(t.Context(), "tools/call", json.RawMessage(test.params), nil)
				if string(got) != result || err != nil {
					t.Errorf("Call() = %s, %v, want %s", got, err, result)
				}
				played()
			})
		}
	}
}

func TestCallRefusesParamsThatAreNoObject(t *testing.T) {
	s, p := connect(t, options(upstream.Legacy))
	for _, params := range []string{`[]`, `1`, `null`, `{`, `{"a":1}}`, `{"a":1,}`, `{},"id":7`} {
		_, err := s.Call(t.Context(), "m", json.RawMessage(params), nil)
		var refusal *jsonrpc.Error
		if !errors.As(err, &refusal) || refusal.Code != jsonrpc.CodeInvalidParams {
			t.Errorf("Call(%s) = %v, want code %d", params, err, jsonrpc.CodeInvalidParams)
		}
	}
	if err := s.Notify("notifications/roots/list_changed", nil); err != nil {
		t.Errorf("Notify() = %v", err)
	}
	p.play(`> {"method":"notifications/roots/list_changed"}`)
}

func TestCallReturnsErrorsWhole(t *testing.T) {
	s, p := connect(t, options(upstream.Legacy))
	tests := []struct {
		answer string
		want   *jsonrpc.Error
	}{
		{
			`"error":{"code":-32042,"message":"say \"x\"","data":{"b":1,"a":9007199254740993,"a":2}}`,
			&jsonrpc.Error{Code: -32042, Message: `say "x"`, Data: json.RawMessage(`{"b":1,"a":9007199254740993,"a":2}`)},
		},
		{`"result":{},"error":{"code":1,"message":"both"}`, &jsonrpc.Error{Code: 1, Message: "both"}},
	}
	for i, test := range tests {
		played := start(func() {
			p.play(fmt.Sprintf("> {\"id\":%d,\"method\":\"m\"}\n< {\"id\":%d,%s}", i+2, i+2, test.answer))
		})
		_, err := s.Call(t.Context(), "m", nil, nil)
		var got *jsonrpc.Error
		if !errors.As(err, &got) {
			t.Errorf("Call() = %v, want a *jsonrpc.Error", err)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("error (-want +got):\n%s", diff)
		}
		played()
	}
	played := start(func() { p.play("> {\"id\":4,\"method\":\"m\"}\n< {\"id\":4}") })
	if got, err := s.Call(t.Context(), "m", nil, nil); err == nil {
		t.Errorf("Call() = %s, nil for a response without result, want an error", got)
	}
	played()
}

// An answer that cannot be read is an answer all the same: its call does not
// wait for another until its time is over.
func TestUnreadableAnswers(t *testing.T) {
	s, p := connect(t, options(upstream.Legacy))
	deep := strings.Repeat("[", 2000) + strings.Repeat("]", 2000)
	for i, test := range []struct{ line, want string }{
		{`{"jsonrpc":"1.0","id":%d,"result":{}}`, "jsonrpc member is not"},
		{`{"jsonrpc":"2.0","id":%d,"result":` + deep + `}`, "nested"},
		{`{"result":` + deep + `,"jsonrpc":"2.0","id":%d}`, "nested"},
		{`{"jsonrpc":"2.0","id":%d,"result":{}} and more`, "data after the message"},
		{`{"jsonrpc":"2.0","id":%d,"result":{}{"jsonrpc"`, "unexpected"},
	} {
		id := i + 2
		played := start(func() {
			p.play(fmt.Sprintf("> {\"id\":%d,\"method\":\"m\"}", id))
			p.send(fmt.Sprintf(`{"level":"debug","id":%d,"msg":"not of the protocol","result":}`, id))
			p.send(fmt.Sprintf(test.line, id))
		})
		_, err := s.Call(t.Context(), "m", nil, nil)
		var unreadable *upstream.AnswerError
		if !errors.As(err, &unreadable) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("Call() = %v for the answer %.60s, want an AnswerError with %q", err, test.line, test.want)
		}
		played()
	}
}

func TestToleratedAnswers(t *testing.T) {
	o := options(upstream.Legacy)
	o.MaxLine = 1000
	s, p := connect(t, o)
	played := start(func() {
		p.play(`
			> {"id":2,"method":"m"}
			< not JSON
			< []
			< {"id":99,"result":{}}
			< {"id":"x","result":{}}
			< {"id":null,"error":{"code":-32700,"message":"parse"}}
			< {"method":"notifications/progress","params":{"progressToken":2,"progress":1}}
			< {"method":"notifications/progress","params":[]}
			< {"method":"notifications/progress"}
			< {"method":"notifications/cancelled"}
			< {"method":"notifications/unheard/of"}
			< {"id":"2","result":{"ok":1}}
			< {"id":2,"result":{"ok":2}}
			> {"id":3,"method":"m"}
		`)
		p.send(`{"jsonrpc":"2.0","id":3,"result":"` + strings.Repeat("x", 1000) + `"}`)
		p.play(`
			> {"id":4,"method":"m"}
			< {"id":4.0,"result":{"ok":4}}
		`)
	})
	if got, err := s.Call(t.Context(), "m", nil, nil); string(got) != `{"ok":1}` || err != nil {
		t.Errorf("Call() = %s, %v, want the first answer", got, err)
	}
	_, err := s.Call(t.Context(), "m", nil, nil)
	var long *jsonrpc.LineError
	if !errors.As(err, &long) || long.Limit != 1000 {
		t.Errorf("Call() = %v for an answer over the limit, want a LineError", err)
	}
	if got, err := s.Call(t.Context(), "m", nil, nil); string(got) != `{"ok":4}` || err != nil {
		t.Errorf("Call() = %s, %v after a long line", got, err)
	}
	played()
	want := upstream.Stats{Lines: 3, Answers: 4}
	if diff := cmp.Diff(want, s.Stats()); diff != "" {
		t.Errorf("Stats() (-want +got):\n%s", diff)
	}
}

// serveCalls answers every request of the client by f, each in its own line,
// until the conversation ends.
func serveCalls(p *peer, f func(m jsonrpc.Message)) (wait func()) {
	return start(func() {
		reader := jsonrpc.NewReader(p.lines, jsonrpc.ReaderOptions{})
		for {
			m, err := reader.Read()
			if err != nil {
				return
			}
			f(m)
		}
	})
}

func TestProgressComesInOrderAndBeforeTheResult(t *testing.T) {
	s, p := connect(t, options(upstream.Modern))
	served := serveCalls(p, func(m jsonrpc.Message) {
		for i := range 5 {
			p.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":%d,"progressToken":%s,"call":%s}}`, i, m.ID, m.ID))
		}
		p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, m.ID))
	})
	var group sync.WaitGroup
	for range 200 {
		group.Go(func() {
			var got []string
			result, err := s.Call(t.Context(), "m", nil, func(params json.RawMessage) {
				theirs, err := jsonrpc.With(params, "progressToken", json.RawMessage(`"t"`))
				if err != nil {
					t.Error(err)
				}
				got = append(got, string(theirs))
			})
			if err != nil {
				t.Error(err)
			}
			var want []string
			for i := range 5 {
				want = append(want, fmt.Sprintf(`{"progress":%d,"progressToken":"t","call":%s}`, i, result))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("progress of call %s (-want +got):\n%s", result, diff)
			}
		})
	}
	group.Wait()
	_ = s.Close()
	served()
}

func TestSlowProgressHoldsNobodyUp(t *testing.T) {
	s, p := connect(t, options(upstream.Legacy))
	played := start(func() {
		p.play(`> {"id":2,"method":"slow","params":{"_meta":{"progressToken":2}}}`)
		for i := range 1000 {
			p.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":%d}}`, i))
		}
		p.play(`
			> {"id":3,"method":"quick"}
			< {"id":3,"result":{}}
			< {"id":2,"result":{}}
		`)
	})
	entered, release := make(chan struct{}, 1), make(chan struct{})
	var got []json.RawMessage
	var group sync.WaitGroup
	group.Go(func() {
		_, err := s.Call(t.Context(), "slow", nil, func(params json.RawMessage) {
			if len(got) == 0 {
				entered <- struct{}{}
				<-release
			}
			got = append(got, params)
		})
		if err != nil {
			t.Errorf("Call(slow) = %v", err)
		}
	})
	<-entered
	if _, err := s.Call(t.Context(), "quick", nil, nil); err != nil {
		t.Errorf("Call(quick) = %v", err)
	}
	close(release)
	group.Wait()
	played()
	lost := s.Stats().Notifications
	if lost < 1000-2*256 || int(lost)+len(got) != 1000 {
		t.Errorf("%d notifications delivered and %d counted as lost, want 1000 in all, at most 256 kept at a time", len(got), lost)
	}
	if last := string(got[len(got)-1]); last != `{"progressToken":2,"progress":999}` {
		t.Errorf("last progress = %s, want the newest", last)
	}
}

func TestConcurrentCallsGetTheirOwnAnswers(t *testing.T) {
	s, p := connect(t, options(upstream.Legacy))
	// Answers come back in reverse, a hundred at a time.
	var waiting []jsonrpc.Message
	served := serveCalls(p, func(m jsonrpc.Message) {
		waiting = append(waiting, m)
		if len(waiting) < 100 {
			return
		}
		for len(waiting) > 0 {
			m := waiting[len(waiting)-1]
			waiting = waiting[:len(waiting)-1]
			p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, m.Params))
		}
	})
	var group sync.WaitGroup
	for i := range 1000 {
		group.Go(func() {
			nonce := fmt.Sprintf(`{"nonce":%d}`, i)
			if got, err := s.Call(t.Context(), "m", json.RawMessage(nonce), nil); string(got) != nonce || err != nil {
				t.Errorf("Call(%s) = %s, %v", nonce, got, err)
			}
		})
	}
	group.Wait()
	_ = s.Close()
	served()
}

func TestCancellationIsSentOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := connect(t, options(upstream.Legacy))
		played := start(func() {
			p.play(`
				> {"id":2,"method":"m"}
				> {"method":"notifications/cancelled","params":{"requestId":2,"reason":"timed out"}}
				< {"id":2,"result":{"late":true}}
				> {"id":3,"method":"m","params":{"_meta":{"progressToken":3}}}
				> {"method":"notifications/cancelled","params":{"requestId":3,"reason":"cancelled by the client"}}
				< {"method":"notifications/progress","params":{"progressToken":3,"progress":1}}
				> {"id":4,"method":"m"}
				> {"method":"notifications/cancelled","params":{"requestId":4,"reason":"the \"limit\" passed"}}
				> {"id":5,"method":"m"}
				< {"id":5,"result":{}}
			`)
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := s.Call(ctx, "m", nil, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Call() = %v, want %v", err, context.DeadlineExceeded)
		}
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, err := s.Call(ctx, "m", nil, func(json.RawMessage) { t.Error("progress after the call was given up") })
		if !errors.Is(err, context.Canceled) {
			t.Errorf("Call() = %v, want %v", err, context.Canceled)
		}
		if _, err := s.Call(ctx, "m", nil, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("Call() = %v with an ended context, want %v", err, context.Canceled)
		}
		ctx, cancelFor := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancelFor(errors.New(`the "limit" passed`)) })
		if _, err := s.Call(ctx, "m", nil, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("Call() = %v, want %v", err, context.Canceled)
		}
		if _, err := s.Call(t.Context(), "m", nil, nil); err != nil {
			t.Errorf("Call() = %v", err)
		}
		played()
	})
}

func TestServerThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := connect(t, options(upstream.Legacy))
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		begin := time.Now()
		var group sync.WaitGroup
		for range 100 {
			group.Go(func() {
				if _, err := s.Call(ctx, "m", nil, nil); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Call() = %v, want %v", err, context.DeadlineExceeded)
				}
			})
		}
		group.Wait()
		if took := time.Since(begin); took != 30*time.Second {
			t.Errorf("calls took %v, want 30s", took)
		}
		for range 3000 {
			if err := s.Notify("n", nil); err != nil {
				t.Fatalf("Notify() = %v", err)
			}
		}
		if got := s.Stats().Replies; got < 1900 {
			t.Errorf("%d of 3000 notifications dropped, want all beyond 1024", got)
		}
		// Once the server reads again it sees the one request that was being
		// written, cancelled, and none of those that were withdrawn.
		read := p.receive()
		if !strings.Contains(read, `"method":"m"`) {
			t.Errorf("first line = %s, want the request", read)
		}
		if read = p.receive(); !strings.Contains(read, "notifications/cancelled") {
			t.Errorf("second line = %s, want its cancellation", read)
		}
		if read = p.receive(); !strings.Contains(read, `"method":"n"`) {
			t.Errorf("third line = %s, want a notification", read)
		}
	})
}

func TestLostConnection(t *testing.T) {
	lost := func(err error) (delivered, ok bool) {
		var lost *upstream.LostError
		if !errors.As(err, &lost) {
			return false, false
		}
		return lost.Delivered, true
	}
	t.Run("while waiting", func(t *testing.T) {
		s, p := connect(t, options(upstream.Legacy))
		played := start(func() { p.play("> {\"id\":2,\"method\":\"m\"}\nEOF") })
		_, err := s.Call(t.Context(), "m", nil, nil)
		if delivered, ok := lost(err); !ok || !delivered || !errors.Is(err, io.EOF) {
			t.Errorf("Call() = %v, want a delivered LostError", err)
		}
		played()
		<-s.Done()
		if got := s.Err(); !errors.Is(got, io.EOF) {
			t.Errorf("Err() = %v, want EOF", got)
		}
		_, err = s.Call(t.Context(), "m", nil, nil)
		if delivered, ok := lost(err); !ok || delivered {
			t.Errorf("Call() = %v after the end, want an undelivered LostError", err)
		}
		if err := s.Notify("n", nil); err == nil {
			t.Error("Notify() = nil after the end, want an error")
		}
	})
	t.Run("stdin closed, stdout open", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, p := connect(t, options(upstream.Legacy))
			first := make(chan error)
			go func() {
				_, err := s.Call(t.Context(), "m", nil, nil)
				first <- err
			}()
			p.play(`> {"id":2,"method":"m"}`)
			_ = p.ReadCloser.Close()
			_, err := s.Call(t.Context(), "m", nil, nil)
			if delivered, ok := lost(err); !ok || delivered {
				t.Errorf("Call() = %v, want an undelivered LostError", err)
			}
			p.play(`< {"id":2,"result":{}}`)
			if err := <-first; err != nil {
				t.Errorf("Call() = %v for the answer that was on its way", err)
			}
			begin := time.Now()
			<-s.Done()
			if took := time.Since(begin); took != time.Second {
				t.Errorf("session ended after %v, want 1s", took)
			}
		})
	})
	t.Run("closed here", func(t *testing.T) {
		s, p := connect(t, options(upstream.Legacy))
		played := start(func() {
			p.play(`> {"id":2,"method":"m"}`)
			if err := s.Close(); err != nil {
				t.Errorf("Close() = %v", err)
			}
		})
		_, err := s.Call(t.Context(), "m", nil, nil)
		if delivered, ok := lost(err); !ok || !delivered || !errors.Is(err, upstream.ErrClosed) {
			t.Errorf("Call() = %v, want a delivered LostError for ErrClosed", err)
		}
		played()
		if err := s.Close(); err != nil || !errors.Is(s.Err(), upstream.ErrClosed) {
			t.Errorf("second Close() = %v, Err() = %v", err, s.Err())
		}
	})
	t.Run("answer and end together", func(t *testing.T) {
		for range 200 {
			s, p := connect(t, options(upstream.Legacy))
			played := start(func() { p.play("> {\"id\":2,\"method\":\"m\"}\n< {\"id\":2,\"result\":{}}\nEOF") })
			if got, err := s.Call(t.Context(), "m", nil, nil); string(got) != "{}" || err != nil {
				t.Fatalf("Call() = %s, %v, want the answer before the end", got, err)
			}
			played()
		}
	})
}

func TestPing(t *testing.T) {
	for era, script := range map[upstream.Era]string{
		upstream.Legacy: "> {\"id\":2,\"method\":\"ping\"}\n< {\"id\":2,\"result\":{}}\n> {\"id\":3,\"method\":\"ping\"}\n< {\"id\":3,\"error\":{\"code\":-32601,\"message\":\"x\"}}",
		upstream.Modern: "> {\"id\":2,\"method\":\"server/discover\",\"params\":{\"_meta\":{META}}}\n< {\"id\":2,\"result\":{}}\n> {\"id\":3,\"method\":\"server/discover\",\"params\":{\"_meta\":{META}}}\n< {\"id\":3,\"error\":{\"code\":0,\"message\":\"x\"}}",
	} {
		s, p := connect(t, options(era))
		played := start(func() { p.play(script) })
		for range 2 {
			if err := s.Ping(t.Context()); err != nil {
				t.Errorf("%s: Ping() = %v", era, err)
			}
		}
		played()
		_ = p.Close()
		if err := s.Ping(t.Context()); err == nil {
			t.Errorf("%s: Ping() = nil for a server that is gone", era)
		}
	}
}
