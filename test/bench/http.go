package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/errgroup"

	"github.com/dockgate/dockgate/test/bench/raw"
	"github.com/dockgate/dockgate/test/bench/sample"
)

// measureHTTP measures calls over HTTP, with a token, approval and audit,
// beside the SDK's own HTTP server with the same echo and the raw exchange on
// the attached stream of the echo's container. And it measures what sessions
// cost that do nothing, and a long list.
func measureHTTP(ctx context.Context, b *bench) (err error) {
	s, err := b.thirty(ctx)
	if err != nil {
		return err
	}
	gateway, err := b.serveHTTP(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, gateway.close()) }()
	sdk, err := b.serveSDK(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sdk.close()) }()
	bare, closeBare, err := b.attachEras(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeBare()) }()
	ours, err := gateway.sessions(ctx, width)
	if err != nil {
		return gateway.explain(err)
	}
	theirs, err := sdk.sessions(ctx, width)
	if err != nil {
		return sdk.explain(err)
	}
	one := []arm{
		{"gateway", func() (float64, error) { return webBlock(ctx, ours[0], echoServer) }},
		{"sdk", func() (float64, error) { return webBlock(ctx, theirs[0], "") }},
		{"gateway modern", func() (float64, error) { return webBlockModern(ctx, ours[0], echoServer) }},
		{"sdk modern", func() (float64, error) { return webBlockModern(ctx, theirs[0], "") }},
		{"raw", bare[0].block},
		{"raw modern", bare[1].block},
	}
	var stalls, sdkStalls []float64
	many := []arm{
		{"gateway", func() (float64, error) { return webFlood(ctx, ours, echoServer, &stalls) }},
		{"sdk", func() (float64, error) { return webFlood(ctx, theirs, "", &sdkStalls) }},
	}
	if _, err := interleave(ctx, 1, append(one, many...)); err != nil { // warms up
		return gateway.explain(err)
	}
	stalls, sdkStalls = nil, nil
	single, err := interleave(ctx, b.pairs, one)
	if err != nil {
		return gateway.explain(err)
	}
	full, err := interleave(ctx, b.pairs, many)
	if err != nil {
		return gateway.explain(err)
	}
	beside := sample.Sums(single["sdk"], single["raw"])
	besideModern := sample.Sums(single["sdk modern"], single["raw modern"])
	return errors.Join(
		b.add("http.call_us", single["gateway"]),
		b.add("http.sdk_us", single["sdk"]),
		b.add("http.raw_us", single["raw"]),
		b.add("http.modern_raw_us", single["raw modern"]),
		b.add("http.added_us", sample.Differences(single["gateway"], beside)),
		b.add("http.modern_call_us", single["gateway modern"]),
		b.add("http.modern_sdk_us", single["sdk modern"]),
		b.add("http.modern_added_us", sample.Differences(single["gateway modern"], besideModern)),
		b.add("http.calls_per_s_16", full["gateway"]),
		b.add("http.sdk_per_s_16", full["sdk"]),
		b.add("http.ratio_sdk_16", sample.Ratios(full["gateway"], full["sdk"])),
		b.add("http.max_stall_ms", stalls),
		b.add("http.sdk_max_stall_ms", sdkStalls),
		b.measureIdle(ctx, s),
		b.measureLongList(ctx),
	)
}

// attachEras attaches to two containers of the demo, and returns a line to each:
// one for the legacy era, whose handshake is done, and one for the modern era.
func (b *bench) attachEras(ctx context.Context) (lines []line, end func() error, err error) {
	var open []*attached
	end = func() error {
		var failures []error
		for _, each := range open {
			failures = append(failures, each.close(ctx))
		}
		return errors.Join(failures...)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, end())
		}
	}()
	for range 2 {
		each, err := b.attach(ctx, b.images[demoImage].template)
		if err != nil {
			return nil, nil, err
		}
		open = append(open, each)
	}
	if err := open[0].Initialize(); err != nil {
		return nil, nil, err
	}
	lines = []line{
		{"raw", open[0].Conversation, echoCall("")},
		{"raw modern", open[1].Conversation, modernEcho("")},
	}
	for _, l := range lines {
		if err := checkEcho(l.conversation, l.params); err != nil {
			return nil, nil, err
		}
	}
	return lines, end, nil
}

// webCall calls the echo of a server behind the gateway, or of the SDK's server.
func webCall(ctx context.Context, w *raw.Web, server string) error {
	_, err := w.Request(ctx, "tools/call", echoCall(server))
	return err
}

func webBlock(ctx context.Context, w *raw.Web, server string) (float64, error) {
	return medianOf(blockCalls, func() error { return webCall(ctx, w, server) })
}

func webBlockModern(ctx context.Context, w *raw.Web, server string) (float64, error) {
	params := modernEcho(server)
	return medianOf(blockCalls, func() error {
		_, err := w.RequestModern(ctx, "tools/call", exposed(server, "echo"), params)
		return err
	})
}

// webFlood lets each session call one after the other, and returns how many
// calls a second are answered. The longest call of all is added to stalls, in
// milliseconds.
func webFlood(ctx context.Context, sessions []*raw.Web, server string, stalls *[]float64) (float64, error) {
	defer quiet()()
	longest := make([]time.Duration, len(sessions))
	group, ctx := errgroup.WithContext(ctx)
	began := time.Now()
	for i, w := range sessions {
		group.Go(func() error {
			for range floodCalls / len(sessions) {
				sent := time.Now()
				if err := webCall(ctx, w, server); err != nil {
					return err
				}
				longest[i] = max(longest[i], time.Since(sent))
			}
			return nil
		})
	}
	err := group.Wait()
	took := time.Since(began)
	worst := time.Duration(0)
	for _, one := range longest {
		worst = max(worst, one)
	}
	*stalls = append(*stalls, milliseconds(worst))
	return floodCalls / took.Seconds(), err
}

// idleSessions are how many sessions do nothing.
const idleSessions = 1000

// measureIdle measures the memory of a session that does nothing: as the
// client has left it, and with a stream open for news.
func (b *bench) measureIdle(ctx context.Context, s *state) error {
	weigh := func(listening bool) func() (float64, error) {
		return func() (_ float64, err error) {
			gateway, err := b.serveHTTP(ctx, s)
			if err != nil {
				return 0, err
			}
			defer func() { err = errors.Join(err, gateway.close()) }()
			// What the first session makes, all the others use.
			if _, err := gateway.sessions(ctx, width); err != nil {
				return 0, gateway.explain(err)
			}
			before, err := rested(ctx, gateway.process)
			if err != nil {
				return 0, err
			}
			all, err := gateway.sessions(ctx, idleSessions)
			if err != nil {
				return 0, gateway.explain(err)
			}
			for _, w := range all {
				if listening {
					stream, err := w.Listen(ctx)
					if err != nil {
						return 0, gateway.explain(err)
					}
					defer func() { err = errors.Join(err, stream.Close()) }()
				}
				w.Close()
			}
			after, err := rested(ctx, gateway.process)
			return (after - before) * 1024 / idleSessions, err
		}
	}
	figures, err := interleave(ctx, b.rounds(2), []arm{{"idle", weigh(false)}, {"listening", weigh(true)}})
	if err != nil {
		return err
	}
	return errors.Join(
		b.add("http.idle_session_kb", figures["idle"]),
		b.add("http.listening_session_kb", figures["listening"]),
	)
}

// rested returns the resident memory of a program that nobody has asked for
// anything for 12 seconds: more than twice as long as a gateway takes until it
// gives back what it does not need.
func rested(ctx context.Context, p *process) (float64, error) {
	timer := time.NewTimer(12 * time.Second)
	defer timer.Stop()
	select {
	case <-timer.C:
		return p.resident()
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// measureLongList measures a list of 1,000 tools.
func (b *bench) measureLongList(ctx context.Context) (err error) {
	s, err := b.state(ctx, "tools-1000", wideEntries(10, 100))
	if err != nil {
		return err
	}
	gateway, err := b.serveHTTP(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, gateway.close()) }()
	sessions, err := gateway.sessions(ctx, 1)
	if err != nil {
		return gateway.explain(err)
	}
	list, err := sessions[0].Request(ctx, "tools/list", nil)
	if err != nil {
		return gateway.explain(err)
	}
	if found, err := count(list); err != nil || found != s.tools {
		return errors.Join(err, fmt.Errorf("%d tools of servers are listed, want %d", found, s.tools))
	}
	const lists = 20
	figures, err := interleave(ctx, b.pairs, []arm{{"list", func() (float64, error) {
		took, err := medianOf(lists, func() error {
			_, err := sessions[0].Request(ctx, "tools/list", nil)
			return err
		})
		return took / 1000, err
	}}})
	if err != nil {
		return gateway.explain(err)
	}
	return b.add("http.list_1000_ms", figures["list"])
}

// A website is a program that serves MCP over HTTP.
type website struct {
	*process
	url, token string
}

// serveHTTP starts a gateway on a state folder that serves HTTP. One caller
// makes all of the calls, so its rate is not bounded.
func (w *world) serveHTTP(ctx context.Context, s *state) (*website, error) {
	config := filepath.Join(filepath.Dir(s.dir), "http.yaml")
	if err := os.WriteFile(config, []byte("http: {rate: 1000000, burst: 1000000, max_sessions: 2000}\n"), 0o600); err != nil {
		return nil, err
	}
	if s.token == "" {
		token, err := exec.CommandContext(ctx, w.gateway, "token", "new", "--state", s.dir, "local").Output()
		if err != nil {
			return nil, fmt.Errorf("token new: %w", err)
		}
		s.token = strings.TrimSpace(string(token))
	}
	p, err := spawn(ctx, environment(), w.gateway, "serve", "--state", s.dir, "--config", config, "--catalog", s.catalog,
		"--approve", "pinned", "--http", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return p.website(s.token)
}

// serveSDK starts the SDK's own HTTP server, see serveEcho.
func (w *world) serveSDK(ctx context.Context) (*website, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p, err := spawn(ctx, environment(), self, echoMode)
	if err != nil {
		return nil, err
	}
	return p.website("")
}

// website waits for the address that a program prints.
func (p *process) website(token string) (*website, error) {
	url, err := bufio.NewReader(p.stdout).ReadString('\n')
	if err != nil {
		return nil, errors.Join(p.explain(fmt.Errorf("address: %w", err)), p.close())
	}
	return &website{process: p, url: strings.TrimSpace(url), token: token}, nil
}

// close ends the program with a signal: it has no client whose leaving it sees.
func (s *website) close() error {
	return errors.Join(syscall.Kill(-s.command.Process.Pid, syscall.SIGTERM), s.process.close())
}

// sessions opens a number of sessions, each with a connection of its own.
func (s *website) sessions(ctx context.Context, count int) ([]*raw.Web, error) {
	all := make([]*raw.Web, count)
	for i := range all {
		all[i] = raw.NewWeb(s.url, s.token)
		if err := all[i].Initialize(ctx); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// echoMode is the argument with which this program is the SDK's HTTP server.
const echoMode = "serve-echo"

// serveEcho is the SDK's own HTTP server with the echo of the demo, in both
// eras, until a signal comes.
func serveEcho(ctx context.Context, stdout io.Writer) error {
	server := mcp.NewServer(&mcp.Implementation{Name: "echo", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "echo", Description: "Returns the text it is given."},
		func(_ context.Context, _ *mcp.CallToolRequest, in struct {
			Text string `json:"text"`
		},
		) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Text}}}, nil, nil
		})
	same := func(*http.Request) *mcp.Server { return server }
	legacy := mcp.NewStreamableHTTPHandler(same, nil)
	modern := mcp.NewStreamableHTTPHandler(same, &mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true})
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(stdout, "http://%s/mcp\n", listener.Addr()); err != nil {
		return err
	}
	web := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Protocol-Version") >= "2026-07-28" {
			modern.ServeHTTP(w, r)
			return
		}
		legacy.ServeHTTP(w, r)
	})}
	context.AfterFunc(ctx, func() { _ = web.Close() })
	if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
