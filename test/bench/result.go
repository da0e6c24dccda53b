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
	sources := []source{
		{"gateway", gateway.Conversation, func(size int) []byte { return sizedCall(sized, size) }},
		{"raw", bare.Conversation, func(size int) []byte { return sizedCall("", size) }},
	}
	for _, p := range b.peers {
		process, params, err := p.connectSized(ctx)
		if err != nil {
			return err
		}
		if process == nil {
			continue
		}
		defer func() { err = errors.Join(err, process.close()) }()
		sources = append(sources, source{p.name, process.Conversation, params})
	}
	for _, w := range weights() {
		if err := b.weigh(ctx, w, sources); err != nil {
			return gateway.explain(err)
		}
	}
	return nil
}

// weigh measures results of one size, from the gateway, the attached stream,
// and those peers that have them.
func (b *bench) weigh(ctx context.Context, w weight, sources []source) error {
	var arms []arm
	for _, s := range sources {
		if err := s.check(w.size); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		arms = append(arms, arm{s.name, func() (float64, error) { return s.drain(w) }})
	}
	figures, err := interleave(ctx, b.pairs, arms)
	if err != nil {
		return err
	}
	key := "result_" + w.name
	errs := []error{
		b.add(key+".call_us", figures["gateway"]),
		b.add(key+".raw_us", figures["raw"]),
		b.add(key+".ratio", sample.Ratios(figures["gateway"], figures["raw"])),
	}
	for _, p := range b.peers {
		if measured, ok := figures[p.name]; ok {
			errs = append(errs,
				b.add(p.key(key+".call_us"), measured),
				b.add(p.key(key+".ratio"), sample.Ratios(measured, figures["raw"])),
			)
		}
	}
	return errors.Join(errs...)
}

// A source gives results of a size.
type source struct {
	name         string
	conversation *raw.Conversation
	params       func(size int) []byte
}

func (s source) drain(w weight) (float64, error) {
	params := s.params(w.size)
	return medianOf(w.calls, func() error {
		_, err := s.conversation.Drain(params)
		return err
	})
}

// check fails if a result is not as long as it was asked to be.
func (s source) check(size int) error {
	got, err := s.conversation.Drain(s.params(size))
	if err == nil && got < size {
		err = fmt.Errorf("a result of %d bytes came as a line of %d", size, got)
	}
	return err
}
