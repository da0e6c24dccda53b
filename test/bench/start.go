package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/moby/moby/client"

	"github.com/dockgate/dockgate/test/bench/sample"
)

// measureStart measures from the start of a process to its answers to
// initialize and to tools/list, with 30 and 300 servers and with 10,000 tools
// that are approved and active. No container may be started for that.
func measureStart(ctx context.Context, b *bench) error {
	thirty, err := b.thirty(ctx)
	if err != nil {
		return err
	}
	hundreds, err := b.state(ctx, "servers-300", serverEntries(300))
	if err != nil {
		return err
	}
	wide, err := b.tenThousand(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	initialize := make(map[string][]float64)
	serve := func(s *state) func() (*process, error) {
		return func() (*process, error) { return b.serve(ctx, s) }
	}
	list := func(name string, start func() (*process, error), tools int) arm {
		return arm{name, func() (float64, error) {
			greeted, listed, err := startOnce(start, tools)
			initialize[name] = append(initialize[name], greeted)
			return listed, err
		}}
	}
	arms := []arm{
		list("list_30", serve(thirty), thirty.tools),
		list("list_300", serve(hundreds), hundreds.tools),
		list("list_10000", serve(wide), wide.tools),
	}
	for _, p := range b.peers {
		arms = append(arms, list(p.name, func() (*process, error) { return p.serve(ctx) }, 0))
	}
	figures, err := interleave(ctx, b.pairs, arms)
	if err != nil {
		return err
	}
	for _, s := range []*state{thirty, hundreds, wide} {
		if err := b.noneStarted(ctx, s, began); err != nil {
			return err
		}
	}
	errs := []error{
		b.add("start.initialize_ms", initialize["list_30"]),
		b.add("start.list_30_ms", figures["list_30"]),
		b.add("start.list_300_ms", figures["list_300"]),
		b.add("start.list_10000_ms", figures["list_10000"]),
	}
	for _, p := range b.peers {
		errs = append(errs,
			b.add(p.key("start.initialize_ms"), initialize[p.name]),
			b.add(p.key("start.initialize_ratio"), sample.Ratios(initialize[p.name], initialize["list_30"])),
			b.add(p.key("start.list_ms"), figures[p.name]),
		)
	}
	return errors.Join(errs...)
}

// startOnce starts a program and returns when it had answered initialize and
// tools/list, in milliseconds. A number of tools is checked unless it is zero.
func startOnce(start func() (*process, error), tools int) (greeted, listed float64, err error) {
	defer quiet()()
	p, err := start()
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	if err := p.Initialize(); err != nil {
		return 0, 0, p.explain(err)
	}
	greeted = milliseconds(time.Since(p.begun))
	list, err := p.Request("tools/list", nil)
	if err != nil {
		return 0, 0, p.explain(err)
	}
	listed = milliseconds(time.Since(p.begun))
	if found, err := count(list); tools > 0 && (err != nil || found != tools) {
		return 0, 0, errors.Join(err, fmt.Errorf("%d tools of servers are listed, want %d", found, tools))
	}
	return greeted, listed, nil
}

// noneStarted fails if the engine has made a container for a state folder.
func (w *world) noneStarted(ctx context.Context, s *state, since time.Time) error {
	seen := w.engine.Events(ctx, client.EventsListOptions{
		Since: fmt.Sprintf("%d.%09d", since.Unix(), since.Nanosecond()),
		Until: fmt.Sprintf("%d.%09d", time.Now().Unix(), time.Now().Nanosecond()),
		Filters: make(client.Filters).Add("type", "container").Add("event", "create").
			Add("label", "dockgate.state="+s.id),
	})
	for {
		select {
		case event := <-seen.Messages:
			return fmt.Errorf("listing has started a container of %s", event.Actor.Attributes["dockgate.server"])
		case err := <-seen.Err:
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}
