package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/dockgate/dockgate/test/bench/raw"
	"github.com/dockgate/dockgate/test/bench/sample"
)

// measureCold measures the first call of a dormant server through a gateway
// that runs, beside a "docker run -i" and the bare calls of the engine that
// start the same container and answer initialize and the same call.
func measureCold(ctx context.Context, b *bench) (err error) {
	s, err := b.thirty(ctx)
	if err != nil {
		return err
	}
	gateway, err := b.connect(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, gateway.close()) }()
	dormant := func() error {
		return b.none(ctx, "dockgate.server="+resting, "dockgate.state="+s.id)
	}
	// The first start of a gateway does more than the others.
	if err := errors.Join(checkEcho(gateway.Conversation, echoCall(resting)), dormant()); err != nil {
		return gateway.explain(err)
	}
	demo := b.images[demoImage].template
	var started []float64
	arms := []arm{
		{"gateway", func() (float64, error) {
			resume := quiet()
			defer resume()
			began := time.Now()
			err := checkEcho(gateway.Conversation, echoCall(resting))
			took := milliseconds(time.Since(began))
			if err != nil {
				return 0, gateway.explain(err)
			}
			return took, dormant()
		}},
		{"docker run", func() (float64, error) {
			defer quiet()()
			return firstAnswer(func() (*process, error) { return spawn(ctx, os.Environ(), "docker", b.dockerRun(demo)...) })
		}},
		{"engine", func() (_ float64, err error) {
			defer quiet()()
			began := time.Now()
			container, err := b.attach(ctx, demo)
			if err != nil {
				return 0, err
			}
			defer func() { err = errors.Join(err, container.close(ctx)) }()
			started = append(started, milliseconds(time.Since(began)))
			if err := greet(container.Conversation, echoCall("")); err != nil {
				return 0, err
			}
			return milliseconds(time.Since(began)), nil
		}},
	}
	for _, p := range b.peers {
		arms = append(arms, arm{p.name, func() (float64, error) { return p.firstCall(ctx) }})
	}
	figures, err := interleave(ctx, b.pairs, arms)
	if err != nil {
		return err
	}
	call := figures["gateway"]
	errs := []error{
		b.add("cold.call_ms", call),
		b.add("cold.docker_run_ms", figures["docker run"]),
		b.add("cold.engine_ms", figures["engine"]),
		b.add("cold.engine_start_ms", started),
		b.add("cold.added_ms", sample.Differences(call, figures["docker run"])),
		b.add("cold.over_engine_ms", sample.Differences(call, figures["engine"])),
	}
	for _, p := range b.peers {
		errs = append(errs,
			b.add(p.key("cold.call_ms"), figures[p.name]),
			b.add(p.key("cold.ratio"), sample.Ratios(figures[p.name], call)),
		)
	}
	return errors.Join(errs...)
}

// greet opens a conversation and makes one call.
func greet(c *raw.Conversation, params []byte) error {
	if err := c.Initialize(); err != nil {
		return err
	}
	return checkEcho(c, params)
}

// firstAnswer starts a program and returns when it had answered initialize and
// a call of the demo's echo, in milliseconds.
func firstAnswer(start func() (*process, error)) (_ float64, err error) {
	p, err := start()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	if err := greet(p.Conversation, echoCall("")); err != nil {
		return 0, p.explain(err)
	}
	return milliseconds(time.Since(p.begun)), nil
}

// firstCall measures the first call through a peer that has just been started
// and has listed its tools. Whether its server runs by then is up to it.
func (p peer) firstCall(ctx context.Context) (_ float64, err error) {
	process, params, err := p.connect(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, process.close()) }()
	defer quiet()()
	began := time.Now()
	if err := checkEcho(process.Conversation, params); err != nil {
		return 0, process.explain(err)
	}
	return milliseconds(time.Since(began)), nil
}
