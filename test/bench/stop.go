package main

import (
	"context"
	"errors"
	"strings"
	"time"
)

// called are the servers that run when a gateway stops, or is weighed.
func called() []string {
	names := []string{echoServer}
	for _, e := range serverEntries(30) {
		if len(names) < 3 && strings.HasPrefix(e.name, "server-") {
			names = append(names, e.name)
		}
	}
	return names
}

// measureStop measures from the end of the client's output to the end of the
// gateway's process, and of the three containers that it had started.
func measureStop(ctx context.Context, b *bench) error {
	s, err := b.thirty(ctx)
	if err != nil {
		return err
	}
	arms := []arm{{"gateway", func() (float64, error) {
		p, err := b.busy(ctx, s)
		if err != nil {
			return 0, err
		}
		defer quiet()()
		began := time.Now()
		if err := errors.Join(p.close(), b.none(ctx, "dockgate.state="+s.id)); err != nil {
			return 0, err
		}
		return milliseconds(time.Since(began)), nil
	}}}
	for _, peer := range b.peers {
		arms = append(arms, arm{peer.name, func() (float64, error) {
			p, params, err := peer.connect(ctx)
			if err != nil {
				return 0, err
			}
			if err := checkEcho(p.Conversation, params); err != nil {
				return 0, errors.Join(p.explain(err), p.close())
			}
			began := time.Now()
			err = p.close()
			return milliseconds(time.Since(began)), err
		}})
	}
	figures, err := interleave(ctx, b.rounds(10), arms)
	if err != nil {
		return err
	}
	errs := []error{b.add("stop.ms", figures["gateway"])}
	for _, p := range b.peers {
		errs = append(errs, b.add(p.key("stop.ms"), figures[p.name]))
	}
	return errors.Join(errs...)
}

// busy starts a gateway with three servers that run.
func (b *bench) busy(ctx context.Context, s *state) (*process, error) {
	p, err := b.connect(ctx, s)
	if err != nil {
		return nil, err
	}
	for _, server := range called() {
		if err := checkEcho(p.Conversation, echoCall(server)); err != nil {
			return nil, errors.Join(p.explain(err), p.close())
		}
	}
	return p, nil
}
