package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/dockgate/dockgate/internal/upstream"
	"github.com/dockgate/dockgate/test/engine"
)

const (
	faulty   = "  thing: {image: dockgate-test/faulty, env: {FAULT: %}}\n"
	echoCall = `{"name":"thing__echo","arguments":{"text":"x"}}`
)

// A crash is what goes on when a gateway is killed.
type crash struct {
	name, entry string
	// obeys reports that the server leaves when its input ends.
	obeys bool
	// holds reports that the engine does not get to start the container.
	holds bool
	// goesOn makes it go on.
	goesOn func(*crashing)
}

// A crashing is a gateway that is about to be killed.
type crashing struct {
	t       *testing.T
	api     *client.Client
	house   house
	id      string // of the state folder
	session *upstream.Session
	held    <-chan struct{} // closed when the engine's proxy holds a start back
}

func (c *crashing) left() []string { return labelled(c.t, c.api, "dockgate.state="+c.id) }

// call makes a call that must succeed.
func (c *crashing) call(params string) {
	c.t.Helper()
	result, err := c.session.Call(c.t.Context(), "tools/call", json.RawMessage(params), nil)
	if err != nil || bytes.Contains(result, []byte(`"isError":true`)) {
		c.t.Fatalf("call %s = %s, %v, want a result", params, result, err)
	}
}

// begin makes a call that its gateway does not live to answer.
func (c *crashing) begin(params string, progress func(json.RawMessage)) {
	ended := make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(ended)
		_, _ = c.session.Call(ctx, "tools/call", json.RawMessage(params), progress)
	}()
	c.t.Cleanup(func() { cancel(); <-ended })
}

func idle(c *crashing) { c.call(echoCall) }

func inCall(c *crashing) {
	c.call(echoCall) // the gateway tells of the start
	works := make(chan struct{}, 100)
	c.begin(`{"name":"thing__sleep","arguments":{"ms":5000}}`, func(json.RawMessage) { works <- struct{}{} })
	<-works
}

func spinning(c *crashing) {
	c.call(echoCall)
	c.begin(`{"name":"thing__fault","arguments":{"text":"x"}}`, nil)
}

func starting(c *crashing) {
	c.begin(echoCall, nil)
	within(c.t, 30*time.Second, "a container that starts", func() bool {
		return slices.ContainsFunc(c.left(), func(s string) bool { return strings.HasSuffix(s, string(container.StateRunning)) })
	})
}

func created(c *crashing) {
	c.begin(echoCall, nil)
	<-c.held
	if got := c.left(); len(got) != 1 || !strings.HasSuffix(got[0], string(container.StateCreated)) {
		c.t.Fatalf("containers %v, want one that is created", got)
	}
}

func crashes() []crash {
	fault := func(name string) string { return strings.Replace(faulty, "%", name, 1) }
	const silent = `  thing:
    image: dockgate-test/everything
    entrypoint: [/usr/bin/node]
    command: [-e, 'process.on("SIGTERM", () => {}); setInterval(() => {}, 1000)']
`
	const port = "  thing: {image: dockgate-test/web, command: [%], http: {port: 8080}}\n"
	return []crash{
		{name: "idle", entry: demo, obeys: true, goesOn: idle},
		{name: "in a call", entry: demo, obeys: true, goesOn: inCall},
		{name: "starting", entry: fault("mute"), obeys: true, goesOn: starting},
		{name: "on a port", entry: strings.Replace(port, "%", "", 1), obeys: true, goesOn: idle},
		{name: "on a port and deaf", entry: strings.Replace(port, "%", "-deaf", 1), obeys: true, goesOn: idle},
		{name: "created", entry: demo, holds: true, goesOn: created},
		{name: "idle and stubborn", entry: fault("stubborn"), goesOn: idle},
		{name: "in a call and deaf", entry: fault("busy"), goesOn: spinning},
		{name: "starting and stubborn", entry: silent, goesOn: starting},
	}
}

// However a gateway was occupied when it was killed, its servers leave: by
// themselves within a second, or with the next gateway of its state folder.
func TestKilled(t *testing.T) {
	api := needEngine(t)
	for _, image := range []string{"dockgate/demo", "dockgate-test/faulty", "dockgate-test/everything", "dockgate-test/web", "dockgate/relay"} {
		needImage(t, api, image)
	}
	var took []time.Duration
	for _, crash := range crashes() {
		t.Run(crash.name, func(t *testing.T) {
			h := newHouse(t, crash.entry)
			held := make(chan struct{})
			hold := sync.OnceFunc(func() { close(held) })
			proxied := h
			proxied.host = proxy(t, api, func(r *http.Request) error {
				// Only the gateway's end ends the request then.
				if strings.HasSuffix(r.URL.Path, "/start") && crash.holds {
					hold()
					<-r.Context().Done()
					return r.Context().Err()
				}
				return nil
			})
			p := proxied.serve(t, "--approve", "all", "--server", "thing")
			c := &crashing{t: t, api: api, house: h, session: connect(t, p, upstream.Legacy), held: held}
			c.id = h.id(t)
			crash.goesOn(c)
			others := moreOf(c)
			if err := p.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			killed := time.Now()
			if crash.obeys {
				within(t, 10*time.Second, "the server leaves", func() bool { return len(c.left()) == 0 })
				took = append(took, time.Since(killed))
			}
			if got := len(c.left()) == 0; got != crash.obeys {
				t.Fatalf("left of a killed gateway: %v", c.left())
			}
			h.serve(t, "--server", "thing")
			within(t, 10*time.Second, "the next gateway removes what is left", func() bool {
				return len(c.left()) == 0 && !others.exist(t, api)
			})
		})
	}
	if len(took) == 0 {
		return // of -run, or of failures
	}
	slices.Sort(took)
	t.Logf("servers that obey the end of their input left after %v", took)
	if median := took[len(took)/2]; median > time.Second {
		t.Errorf("servers leave after %v, want a second", median)
	}
}

// others are what else a gateway may have made.
type others struct{ network, volume string }

// moreOf makes a network and a volume with the labels of the gateway that has
// a container now.
func moreOf(c *crashing) others {
	c.t.Helper()
	list, err := c.api.ContainerList(c.t.Context(), client.ContainerListOptions{
		All: true, Filters: make(client.Filters).Add("label", "dockgate.state="+c.id),
	})
	if err != nil || len(list.Items) == 0 {
		c.t.Fatalf("containers = %+v, %v, want one", list.Items, err)
	}
	labels, called := list.Items[0].Labels, "dockgate-crash-"+list.Items[0].ID[:12]
	network, err := c.api.NetworkCreate(c.t.Context(), called, client.NetworkCreateOptions{Internal: true, Labels: labels})
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := c.api.VolumeCreate(c.t.Context(), client.VolumeCreateOptions{Name: called, Labels: labels}); err != nil {
		c.t.Fatal(err)
	}
	return others{network: network.ID, volume: called}
}

func (o others) exist(t *testing.T, api *client.Client) bool {
	t.Helper()
	networks, err := api.NetworkList(t.Context(), client.NetworkListOptions{Filters: make(client.Filters).Add("id", o.network)})
	if err != nil {
		t.Fatal(err)
	}
	volumes, err := api.VolumeList(t.Context(), client.VolumeListOptions{Filters: make(client.Filters).Add("name", o.volume)})
	if err != nil {
		t.Fatal(err)
	}
	return len(networks.Items)+len(volumes.Items) > 0
}

// proxy stands before the engine that the test uses.
func proxy(t *testing.T, api *client.Client, before func(*http.Request) error) (host string) {
	t.Helper()
	if !strings.HasPrefix(api.DaemonHost(), "unix://") {
		t.Skipf("the engine at %s has no socket", api.DaemonHost())
	}
	p, err := engine.NewProxy(t.Context(), api.DaemonHost(), shortDir(t), before)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p.Host
}

// shortDir is a folder for sockets, whose paths may not be long.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "dg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// A slow is a registry with the demo's image, of which one layer that no
// engine has is held back.
type slow struct {
	ref string
	// asked is closed when that layer is asked for.
	asked chan struct{}
	// give lets it go.
	give func()
}

func slowRegistry(t *testing.T, api *client.Client) slow {
	t.Helper()
	layer, err := random.Layer(1<<20, types.DockerLayer)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := layer.Digest()
	if err != nil {
		t.Fatal(err)
	}
	image, err := mutate.AppendLayers(saved(t, api, "dockgate/demo"), layer)
	if err != nil {
		t.Fatal(err)
	}
	given := make(chan struct{})
	s := slow{asked: make(chan struct{}), give: sync.OnceFunc(func() { close(given) })}
	ask := sync.OnceFunc(func() { close(s.asked) })
	serve := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/blobs/"+digest.String()) {
			ask()
			select {
			case <-given:
			case <-r.Context().Done():
				return
			}
		}
		serve.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { s.give(); server.CloseClientConnections(); server.Close() })
	s.ref = strings.TrimPrefix(server.URL, "http://") + "/slow:1"
	ref, err := name.ParseReference(s.ref, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, image); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, err := api.ImageRemove(context.WithoutCancel(t.Context()), s.ref, client.ImageRemoveOptions{Force: true})
		if err != nil && !cerrdefs.IsNotFound(err) {
			t.Error(err)
		}
	})
	return s
}

// saved is an image of the engine.
func saved(t *testing.T, api *client.Client, ref string) v1.Image {
	t.Helper()
	archive, err := api.ImageSave(t.Context(), []string{ref})
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(archive)
	if err := errors.Join(err, archive.Close()); err != nil {
		t.Fatal(err)
	}
	image, err := tarball.Image(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }, nil)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// A gateway that is killed while it pulls leaves nothing, and the next one
// pulls what it did not get.
func TestKilledWhilePulling(t *testing.T) {
	t.Parallel()
	api := needEngine(t)
	needImage(t, api, "dockgate/demo")
	images := slowRegistry(t, api)
	h := newHouse(t, "  thing: {image: "+images.ref+"}\n")
	p := h.serve(t, "--approve", "all", "--server", "thing")
	c := &crashing{t: t, api: api, house: h, session: connect(t, p, upstream.Legacy)}
	c.begin(echoCall, nil)
	<-images.asked
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if names := left(t, api, h); len(names) > 0 {
		t.Errorf("left of a killed gateway: %v", names)
	}
	images.give()
	c.session = connect(t, h.serve(t, "--approve", "all", "--server", "thing"), upstream.Legacy)
	c.call(echoCall)
}

// Gateways of one state folder, and of two, leave each other's servers alone,
// however often they sweep.
func TestGatewaysLeaveEachOther(t *testing.T) {
	t.Parallel()
	api := needEngine(t)
	needImage(t, api, "dockgate/demo")
	one, other := newHouse(t, demo), newHouse(t, demo)
	type gateway struct {
		*crashing
		sweeps chan struct{}
	}
	var gateways []gateway
	for _, h := range []house{one, one, other} {
		g := gateway{crashing: &crashing{t: t}, sweeps: make(chan struct{}, 100)}
		h.host = proxy(t, api, func(r *http.Request) error {
			if strings.HasSuffix(r.URL.Path, "/volumes") { // the last that a sweep asks for
				g.sweeps <- struct{}{}
			}
			return nil
		})
		g.session = connect(t, h.serve(t, "--approve", "all", "--server", "thing"), upstream.Legacy)
		g.call(echoCall)
		gateways = append(gateways, g)
	}
	running := func() []string { return append(left(t, api, one), left(t, api, other)...) }
	before := running()
	if len(before) != 3 {
		t.Fatalf("running: %v, want three", before)
	}
	for _, g := range gateways {
		for len(g.sweeps) > 0 {
			<-g.sweeps
		}
		for range 2 { // the first may have asked before the last container was there
			select {
			case <-g.sweeps:
			case <-time.After(30 * time.Second):
				t.Fatal("a gateway does not sweep")
			}
		}
	}
	if diff := cmp.Diff(before, running()); diff != "" {
		t.Errorf("running before and after the sweeps (-before +after):\n%s", diff)
	}
	for _, g := range gateways {
		g.call(echoCall)
	}
}
