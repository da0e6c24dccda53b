package main

import (
	"context"
	"errors"
	"time"
)

// measureMemory measures the resident memory of the gateway: with 30 servers
// listed, with three of them running and called, and with 10,000 tools listed.
func measureMemory(ctx context.Context, b *bench) error {
	thirty, err := b.thirty(ctx)
	if err != nil {
		return err
	}
	wide, err := b.tenThousand(ctx)
	if err != nil {
		return err
	}
	weigh := func(name string, start func() (*process, error)) arm {
		return arm{name, func() (_ float64, err error) {
			p, err := start()
			if err != nil {
				return 0, err
			}
			defer func() { err = errors.Join(err, p.close()) }()
			if _, err := p.Request("tools/list", nil); err != nil {
				return 0, p.explain(err)
			}
			return settled(ctx, p)
		}}
	}
	arms := []arm{
		weigh("idle", func() (*process, error) { return b.connect(ctx, thirty) }),
		weigh("run_3", func() (*process, error) { return b.worked(ctx, thirty) }),
		weigh("list_10000", func() (*process, error) { return b.connect(ctx, wide) }),
	}
	for _, peer := range b.peers {
		arms = append(arms, weigh(peer.name, func() (*process, error) {
			p, _, err := peer.connect(ctx)
			return p, err
		}))
	}
	figures, err := interleave(ctx, b.rounds(5), arms)
	if err != nil {
		return err
	}
	errs := []error{
		b.add("rss.idle_mb", figures["idle"]),
		b.add("rss.run_3_mb", figures["run_3"]),
		b.add("rss.list_10000_mb", figures["list_10000"]),
	}
	for _, p := range b.peers {
		errs = append(errs, b.add(p.key("rss.idle_mb"), figures[p.name]))
	}
	return errors.Join(errs...)
}

// workCalls are enough calls for garbage to be collected.
const workCalls = 1000

// worked starts a gateway with three servers that run and had much to do.
func (b *bench) worked(ctx context.Context, s *state) (*process, error) {
	p, err := b.busy(ctx, s)
	if err != nil {
		return nil, err
	}
	for _, server := range called() {
		if err := p.Flood(echoCall(server), workCalls, width); err != nil {
			return nil, errors.Join(p.explain(err), p.close())
		}
	}
	return p, nil
}

// settled returns the resident memory of a program once it has stayed the
// same for a second, or after five.
func settled(ctx context.Context, p *process) (float64, error) {
	const every, last, most = 100 * time.Millisecond, 10, 50
	var seen []float64
	err := eventually(ctx, every, func() (bool, error) {
		now, err := p.resident()
		seen = append(seen, now)
		return steady(seen, last) || len(seen) == most, err
	})
	if err != nil {
		return 0, err
	}
	return seen[len(seen)-1], nil
}
