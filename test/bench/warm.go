package main

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dockgate/dockgate/test/bench/raw"
	"github.com/dockgate/dockgate/test/bench/sample"
)

const (
	// blockCalls are the calls of one turn, one after the other.
	blockCalls = 200
	// floodCalls are those with width in flight.
	floodCalls = 1600
	width      = 16
)

// measureWarm measures calls of a server that runs, through the gateway and
// beside it on the attached stream of the same kind of container: one after
// the other, and 16 in flight.
func measureWarm(ctx context.Context, b *bench) (err error) {
	s, err := b.thirty(ctx)
	if err != nil {
		return err
	}
	gateway, err := b.connect(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, gateway.close()) }()
	bare, err := b.attach(ctx, b.images[demoImage].template)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bare.close(ctx)) }()
	if err := bare.Initialize(); err != nil {
		return err
	}
	sdk, closeSDK, err := b.attachSDK(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeSDK()) }()

	lines := []line{
		{"gateway", gateway.Conversation, echoCall(echoServer)},
		{"raw", bare.Conversation, echoCall("")},
	}
	for _, p := range b.peers {
		process, params, err := p.connect(ctx)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, process.close()) }()
		lines = append(lines, line{p.name, process.Conversation, params})
	}
	one, many := []arm{{"sdk", sdk}}, []arm{}
	for _, l := range lines {
		if err := checkEcho(l.conversation, l.params); err != nil {
			return gateway.explain(err)
		}
		one = append(one, arm{l.name, l.block})
		many = append(many, arm{l.name, l.flood})
	}
	if _, err := interleave(ctx, 1, append(one, many...)); err != nil { // warms up
		return err
	}
	single, err := interleave(ctx, b.pairs, one)
	if err != nil {
		return err
	}
	full, err := interleave(ctx, b.pairs, many)
	if err != nil {
		return err
	}
	return b.reportWarm(single, full)
}

func (b *bench) reportWarm(single, full map[string][]float64) error {
	errs := []error{
		b.add("warm.call_us", single["gateway"]),
		b.add("warm.raw_us", single["raw"]),
		b.add("warm.sdk_us", single["sdk"]),
		b.add("warm.added_us", sample.Differences(single["gateway"], single["raw"])),
		b.add("warm.calls_per_s_16", full["gateway"]),
		b.add("warm.raw_per_s_16", full["raw"]),
		b.add("warm.ratio_raw_16", sample.Ratios(full["gateway"], full["raw"])),
	}
	for _, p := range b.peers {
		errs = append(errs,
			b.add(p.key("warm.call_us"), single[p.name]),
			b.add(p.key("warm.added_us"), sample.Differences(single[p.name], single["raw"])),
			b.add(p.key("warm.ratio"), sample.Ratios(single[p.name], single["gateway"])),
			b.add(p.key("warm.calls_per_s_16"), full[p.name]),
			b.add(p.key("warm.ratio_raw_16"), sample.Ratios(full[p.name], full["raw"])),
		)
	}
	return errors.Join(errs...)
}

// A line is a conversation and a call to make in it.
type line struct {
	name         string
	conversation *raw.Conversation
	params       []byte
}

// block returns the median time of a call, in microseconds.
func (l line) block() (float64, error) {
	return medianOf(blockCalls, func() error {
		_, err := l.conversation.Call(l.params)
		return err
	})
}

// medianOf does something a number of times and returns the median of the
// times it took, in microseconds.
func medianOf(times int, do func() error) (float64, error) {
	defer quiet()()
	took := make([]float64, times)
	for i := range took {
		began := time.Now()
		if err := do(); err != nil {
			return 0, err
		}
		took[i] = microseconds(time.Since(began))
	}
	return sample.Median(took), nil
}

// flood returns how many calls a second are answered with 16 in flight.
func (l line) flood() (float64, error) {
	defer quiet()()
	began := time.Now()
	err := l.conversation.Flood(l.params, floodCalls, width)
	return floodCalls / time.Since(began).Seconds(), err
}

// attachSDK returns what makes a block of calls with the SDK's own client on
// the attached stream of a container.
func (b *bench) attachSDK(ctx context.Context) (block func() (float64, error), end func() error, err error) {
	container, err := b.attach(ctx, b.images[demoImage].template)
	if err != nil {
		return nil, nil, err
	}
	transport := &mcp.IOTransport{Reader: io.NopCloser(container.in), Writer: half{container}}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "dockgate-bench", Version: "1"}, nil).Connect(ctx, transport, nil)
	if err != nil {
		return nil, nil, errors.Join(err, container.close(ctx))
	}
	call := &mcp.CallToolParams{Name: "echo", Arguments: map[string]string{"text": said}}
	block = func() (float64, error) {
		return medianOf(blockCalls, func() error {
			_, err := session.CallTool(ctx, call)
			return err
		})
	}
	return block, func() error { return errors.Join(session.Close(), container.close(ctx)) }, nil
}

// half is the input of a container; closing it ends the container.
type half struct{ container *attached }

func (h half) Write(b []byte) (int, error) { return h.container.stream.Conn.Write(b) }

func (h half) Close() error { return h.container.stream.CloseWrite() }
