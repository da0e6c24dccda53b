package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/dockgate/dockgate/test/bench/raw"
	"github.com/dockgate/dockgate/test/bench/sample"
)

// A weight is a size of a result, and how often one is asked for in a turn.
type weight struct {
	name  string
	size  int
	calls int
}

func weights() []weight {
	return []weight{{"1kb", 1 << 10, 100}, {"1mb", 1 << 20, 5}, {"10mb", 10 << 20, 1}}
}

// measureResult measures results of several sizes through the gateway, beside
// the same results on the attached stream. The client reads them and keeps
// nothing, so the ratio is that of the copies.
func measureResult(ctx context.Context, b *bench) (err error) {
	s, err := b.thirty(ctx)
	if err != nil {
		return err
	}
	gateway, err := b.connect(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, gateway.close()) }()
	bare, err := b.attach(ctx, b.images[sizedImage].template)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bare.close(ctx)) }()
	if err := bare.Initialize(); err != nil {
		return err
	}
	for _, w := range weights() {
		through, direct := w.drain(gateway.Conversation, sized), w.drain(bare.Conversation, "")
		if err := errors.Join(w.check(gateway.Conversation, sized), w.check(bare.Conversation, "")); err != nil {
			return gateway.explain(err)
		}
		figures, err := interleave(ctx, b.pairs, []arm{{"gateway", through}, {"raw", direct}})
		if err != nil {
			return gateway.explain(err)
		}
		key := "result_" + w.name
		if err := errors.Join(
			b.add(key+".call_us", figures["gateway"]),
			b.add(key+".raw_us", figures["raw"]),
			b.add(key+".ratio", sample.Ratios(figures["gateway"], figures["raw"])),
		); err != nil {
			return err
		}
	}
	return nil
}

func (w weight) drain(c *raw.Conversation, server string) func() (float64, error) {
	params := sizedCall(server, w.size)
	return func() (float64, error) {
		return medianOf(w.calls, func() error {
			_, err := c.Drain(params)
			return err
		})
	}
}

// check fails if the result is not as long as it was asked to be.
func (w weight) check(c *raw.Conversation, server string) error {
	size, err := c.Drain(sizedCall(server, w.size))
	if err == nil && size < w.size {
		err = fmt.Errorf("a result of %d bytes came as a line of %d", w.size, size)
	}
	return err
}
