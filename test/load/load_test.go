// Package load_test puts the built gateway under load, on a real engine: many
// callers at once, and gateways that are killed at any moment.
//
// Every call carries a text of its own that must come back in its own answer.
// While callers are served, the gateway is pinged every ten milliseconds: it
// answers that alone, so a late answer is a stall in the gateway or of the
// machine, and a process that does nothing else is pinged beside it to tell the
// two apart. LOAD=long makes it last longer.
package load_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/test/built"
)

// binary is the gateway, built once.
var binary string

// asFloor makes this program the process that only answers.
const asFloor = "DOCKGATE_LOAD_FLOOR"

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if os.Getenv(asFloor) != "" {
		if err := answer(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
	dir, err := os.MkdirTemp("", "dockgate-load-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if binary, err = built.Program(context.Background(), dir, "cmd/dockgate"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// answer is the least that a server of MCP can do.
func answer(in io.Reader, out io.Writer) error {
	const hello = `{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"floor","version":"1"}}`
	lines := bufio.NewScanner(in)
	writer := jsonrpc.NewWriter(out)
	for lines.Scan() {
		m, err := jsonrpc.Parse(lines.Bytes())
		if err != nil {
			return err
		}
		if m.Kind() != jsonrpc.Request {
			continue
		}
		result := "{}"
		if m.Method == "initialize" {
			result = hello
		}
		if err := writer.Write(jsonrpc.Message{ID: m.ID, Result: []byte(result)}); err != nil {
			return err
		}
	}
	return lines.Err()
}

const (
	// servers is how many servers stand behind a gateway, callers how many
	// calls are under way at a time, and each how many a caller makes.
	servers = 8
	callers = 16
	each    = 200
)

// One client has sixteen calls in flight on eight servers, which are dormant
// at first.
func TestOneSession(t *testing.T) {
	api := needDemo(t)
	h := newHouse(t, servers, servers, "")
	load(t, []*gate{h.open(t)}, callers, each)
	h.mustVanish(t, api)
}

// Four clients have a gateway each, as over stdio, with one state folder for
// all: four calls in flight on each, and every server runs four times.
func TestFourGateways(t *testing.T) {
	api := needDemo(t)
	h := newHouse(t, servers, servers, "")
	var gates []*gate
	for range 4 {
		gates = append(gates, h.open(t))
	}
	load(t, gates, callers/len(gates), each)
	h.mustVanish(t, api)
}

// Sixteen calls are in flight on eight servers of which five may run: each
// gets its turn, although servers must stop for others all the time.
func TestMoreServersThanPlaces(t *testing.T) {
	api := needDemo(t)
	h := newHouse(t, servers, 5, "")
	load(t, []*gate{h.open(t)}, callers, 5)
	h.mustVanish(t, api)
}

// load lets callers of each gateway make their calls, and holds the gateway to
// what it promises meanwhile. It ends the gateways.
func load(t *testing.T, gates []*gate, callers, calls int) {
	t.Helper()
	floor := newFloor(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	pulse, stop := context.WithCancel(ctx)
	var beating, calling errgroup.Group
	pings := make([]latencies, len(gates)+1)
	for i, session := range append(sessions(gates), floor) {
		beating.Go(func() (err error) { pings[i], err = beat(pulse, session); return err })
	}
	begun := time.Now()
	took := make([]latencies, len(gates)*callers)
	for i := range took {
		calling.Go(func() (err error) {
			took[i], err = gates[i/callers].work(ctx, i, calls)
			return err
		})
	}
	err := calling.Wait()
	whole := time.Since(begun)
	stop()
	if err := errors.Join(err, beating.Wait()); err != nil {
		t.Fatal(err)
	}
	answers := join(took)
	t.Logf("%d calls in %v, %.0f/s; each: %v", len(answers), whole.Round(time.Millisecond), float64(len(answers))/whole.Seconds(), answers)
	quiet := pings[len(gates)]
	for i, g := range gates {
		t.Logf("gateway %d pinged: %v; %s", i, pings[i], g.vitals(t))
		pings[i].mustKeepUp(t, quiet)
		if err := g.close(); err != nil {
			t.Error(err)
		}
	}
	t.Logf("process that only answers: %v", quiet)
	t.Logf("gateways' pings:\n%s", join(pings[:len(gates)]).histogram())
}
