//go:build unix

package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/creack/pty"
	"github.com/moby/moby/client"

	"github.com/dockgate/dockgate/internal/upstream"
	"github.com/dockgate/dockgate/test/clients"
)

// A home is a user's home folder, with a client's configuration that starts
// the gateway's image.
type home struct {
	dir, notes string // notes is a folder in dir
	config     string // the client's
	volume     string // has the gateway's state
	server     string // serves notes
}

// newHome connects a client to the gateway's image, on the host as people do,
// with flags of connect.
func newHome(t *testing.T, api *client.Client, gateway string, flags ...string) home {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	// Names that no other test has: containers are told apart by them.
	id := strings.ToLower(regexp.MustCompile(`\W`).ReplaceAllString(t.Name(), "")) + fmt.Sprint(os.Getpid())
	h := home{
		dir: dir, notes: filepath.Join(dir, "notes"), config: filepath.Join(dir, "mcp.json"),
		volume: "dockgate-test-" + id, server: "notes" + id,
	}
	outside := t.TempDir()
	for _, folder := range []string{h.notes, filepath.Join(dir, ".config", "dockgate"), filepath.Join(dir, "shop", ".git")} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		"notes/note.txt":               "a note\n",
		"shop/.env":                    "SHOP_TOKEN=from the project\n",
		".config/dockgate/config.yaml": gateway + "catalogs: [" + filepath.Join(dir, "servers.yaml") + "]\n",
		"servers.yaml": fmt.Sprintf("version: 1\nservers:\n"+
			"  %s:\n    image: dockgate-test/filesystem\n    mounts: [{source: ~/notes, target: /data}]\n"+
			"    secrets: [{name: shop.token, env: SHOP_TOKEN, required: true}]\n    limits: {memory: 256MB}\n"+
			"  plain: {image: dockgate-test/filesystem, mounts: [{source: ~/notes, target: /data}], limits: {memory: 256MB}}\n"+
			"  elsewhere: {image: dockgate-test/filesystem, mounts: [{source: %q, target: /data}]}\n", h.server, outside),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if os.Getuid() == 0 { // the gateway's root, which has no capabilities, is not the user
		for _, path := range []string{dir, h.notes, filepath.Join(h.notes, "note.txt"), filepath.Join(dir, "shop"), filepath.Join(dir, "shop", ".env")} {
			if err := os.Chown(path, 1234, 2345); err != nil {
				t.Fatal(err)
			}
		}
	}
	args := append([]string{"connect", "claude-desktop", "--docker", "--volume", h.volume, "--file", h.config}, flags...)
	connect := exec.CommandContext(t.Context(), binary, args...)
	connect.Dir = filepath.Join(dir, "shop")
	connect.Env = append(os.Environ(), "HOME="+dir)
	if out, err := connect.CombinedOutput(); err != nil {
		t.Fatalf("connect: %v\n%s", err, out)
	}
	t.Cleanup(func() {
		within(t, 20*time.Second, "no container uses the volume", func() bool { return len(h.gateways(t, api)) == 0 })
		removeVolume(t, api, h.volume)
	})
	return h
}

// removeVolume removes a volume. For a moment the engine takes it to be used by
// a container that it lists no more.
func removeVolume(t *testing.T, api *client.Client, name string) {
	t.Helper()
	within(t, 20*time.Second, "the volume goes", func() bool {
		_, err := api.VolumeRemove(context.WithoutCancel(t.Context()), name, client.VolumeRemoveOptions{})
		return err == nil
	})
}

// gateways returns the ids of the containers that use the volume.
func (h home) gateways(t *testing.T, api *client.Client) []string {
	t.Helper()
	list, err := api.ContainerList(context.WithoutCancel(t.Context()), client.ContainerListOptions{All: true, Filters: make(client.Filters).Add("volume", h.volume)})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, c := range list.Items {
		ids = append(ids, c.ID)
	}
	return ids
}

// servers returns the containers of the server.
func (h home) servers(t *testing.T, api *client.Client) []string {
	t.Helper()
	return labelled(t, api, "dockgate.server="+h.server)
}

// command returns the command line of the client's configuration.
func (h home) command(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(h.config)
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Servers map[string]struct {
			Command string
			Args    []string
		} `json:"mcpServers"`
	}
	if err := json.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	entry := config.Servers["dockgate"]
	return append([]string{entry.Command}, entry.Args...)
}

// dial starts the gateway as a client does, and speaks with it.
func (h home) dial(t *testing.T) (*program, *upstream.Session) {
	t.Helper()
	line := h.command(t)
	p := start(t, line[0], line[1:]...)
	return p, connect(t, p, upstream.Legacy)
}

func (h home) call(t *testing.T, s *upstream.Session, name, arguments string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	result, err := s.Call(ctx, "tools/call", json.RawMessage(fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, arguments)), nil)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return string(result)
}

func needImages(t *testing.T) *client.Client {
	t.Helper()
	api := needEngine(t)
	needImage(t, api, "dockgate/gateway")
	needImage(t, api, "dockgate-test/filesystem")
	return api
}

// The MCP inspector starts the gateway's image, as its Dockerfile makes it, which
// starts a server beside itself on a folder of the host.
func TestImage(t *testing.T) {
	api := needImages(t)
	installed, err := clients.Install(t.Context())
	if err != nil {
		if os.Getenv("TEST_ENGINE") == "require" {
			t.Fatal(err)
		}
		t.Skipf("no clients: %v", err)
	}
	h := newHome(t, api, "approval: {mode: all}\n", "--image", buildGateway(t, api))
	inspect := func(args ...string) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		line := []string{"--cli", "--config", h.config, "--server", "dockgate"}
		cmd := installed.Command(ctx, installed.Inspector, append(line, args...)...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if !json.Valid(out) {
			t.Fatalf("inspector %s: %v, no JSON\n%s%s", strings.Join(args, " "), err, out, &stderr)
		}
		within(t, 10*time.Second, "gateway and server go with the inspector", func() bool {
			return len(h.gateways(t, api)) == 0 && len(h.servers(t, api)) == 0
		})
		return string(out)
	}
	called := func(name string, args ...string) []string {
		return append([]string{"--method", "tools/call", "--tool-name", name}, args...)
	}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{called("mcp_add", "--tool-arg", "name="+h.server), `activated`},
		{[]string{"--method", "tools/list"}, `"` + h.server + `__read_text_file"`}, // of the volume
		{called(h.server+"__read_text_file", "--tool-arg", "path=/data/note.txt"), `a note`},
		{called(h.server+"__write_file", "--tool-arg", "path=/data/new.txt", "--tool-arg", "content=of the server"), `Successfully wrote`},
		{called("mcp_add", "--tool-arg", "name=elsewhere"), `does not see`},
	} {
		if got := inspect(tt.args...); !strings.Contains(got, tt.want) {
			t.Errorf("inspector %s =\n%s\nwant %s in it", strings.Join(tt.args, " "), got, tt.want)
		}
	}
	written, err := os.ReadFile(filepath.Join(h.notes, "new.txt"))
	if err != nil || string(written) != "of the server" {
		t.Errorf("the server wrote %q, %v, want it on the host", written, err)
	}
	info, err := os.Stat(filepath.Join(h.notes, "new.txt"))
	if err != nil {
		t.Fatal(err)
	}
	folder, err := os.Stat(h.notes)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := info.Sys().(*syscall.Stat_t).Uid, folder.Sys().(*syscall.Stat_t).Uid; got != want {
		t.Errorf("what the server wrote belongs to %d, want the folder's owner %d", got, want)
	}
}

// Two clients have a gateway each, with one state; however one ends, what it
// started goes, and the other works on.
func TestImageShared(t *testing.T) {
	api := needImages(t)
	h := newHome(t, api, "approval: {mode: all}\n")
	first, session := h.dial(t)
	if got := h.call(t, session, "mcp_add", `{"name":"`+h.server+`"}`); !strings.Contains(got, "activated") {
		t.Fatalf("mcp_add = %s", got)
	}
	read := func(s *upstream.Session) {
		t.Helper()
		if got := h.call(t, s, h.server+"__read_text_file", `{"path":"/data/note.txt"}`); !strings.Contains(got, "a note") {
			t.Errorf("read_text_file = %s, want the note", got)
		}
	}
	read(session)
	second, other := h.dial(t)
	read(other)
	if got := h.servers(t, api); len(got) != 2 {
		t.Errorf("servers of two clients: %v, want one of each", got)
	}
	gateways := h.gateways(t, api)
	if len(gateways) != 2 {
		t.Errorf("gateways of two clients: %v, want one of each", gateways)
	}

	if err := first.cmd.Process.Kill(); err != nil { // docker run itself
		t.Fatal(err)
	}
	within(t, 10*time.Second, "what a killed client had goes", func() bool {
		return len(h.gateways(t, api)) == 1 && len(h.servers(t, api)) == 1
	})
	read(other)

	last := h.gateways(t, api)
	third, again := h.dial(t)
	read(again)
	if _, err := api.ContainerKill(t.Context(), last[0], client.ContainerKillOptions{Signal: "KILL"}); err != nil {
		t.Fatal(err)
	}
	within(t, 10*time.Second, "what a killed gateway had goes", func() bool {
		return len(h.gateways(t, api)) == 1 && len(h.servers(t, api)) == 1
	})
	_ = second.cmd.Wait()
	read(again)
	if err := third.Close(); err != nil {
		t.Fatal(err)
	}
	within(t, 10*time.Second, "everything goes in the end", func() bool {
		return len(h.gateways(t, api))+len(h.servers(t, api)) == 0
	})
}

// A call waits for a person, who runs the very command that it names.
func TestImageApproval(t *testing.T) {
	api := needImages(t)
	h := newHome(t, api, "approval: {wait: 1s}\n")
	_, session := h.dial(t)
	pending := h.call(t, session, "mcp_add", `{"name":"`+h.server+`"}`)
	want := "docker run -it --rm -e DOCKGATE_VOLUME=" + h.volume + " -v " + h.volume + ":/data dockgate/gateway approve"
	if !strings.Contains(pending, "APPROVAL_PENDING") || !strings.Contains(pending, want) {
		t.Fatalf("mcp_add = %s\nwant it to name %s", pending, want)
	}
	approve := exec.CommandContext(t.Context(), "sh", "-c", want)
	terminal, err := pty.Start(approve)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = terminal.Close() }()
	if _, err := io.WriteString(terminal, h.server+"\n"); err != nil {
		t.Fatal(err)
	}
	shown, _ := io.ReadAll(terminal) // a terminal ends with an error
	if err := approve.Wait(); err != nil || !bytes.Contains(shown, []byte(h.notes)) {
		t.Fatalf("approve = %v, want the folder in it:\n%s", err, shown)
	}
	within(t, 30*time.Second, "the server is active", func() bool {
		return strings.Contains(h.call(t, session, "mcp_add", `{"name":"`+h.server+`"}`), "activated")
	})
	if got := h.call(t, session, h.server+"__read_text_file", `{"path":"/data/note.txt"}`); !strings.Contains(got, "a note") {
		t.Errorf("read_text_file = %s, want the note", got)
	}
}

// The compose file starts what people start with docker run.
func TestImageCompose(t *testing.T) {
	api := needImages(t)
	h := newHome(t, api, "approval: {mode: all}\n")
	options, err := cli.NewProjectOptions([]string{"../../compose/gateway.yaml"}, cli.WithEnv([]string{"HOME=" + h.dir}), cli.WithInterpolation(true))
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	service, err := project.GetService("gateway")
	if err != nil {
		t.Fatal(err)
	}
	// The command line of docker is here, compose need not be.
	line := h.command(t)
	args := append(slices.Clone(line[1:slices.Index(line, "run")]), "run", "-i", "--rm", "--read-only="+strconv.FormatBool(service.ReadOnly))
	for flag, values := range map[string][]string{"--cap-drop": service.CapDrop, "--cap-add": service.CapAdd, "--security-opt": service.SecurityOpt} {
		for _, value := range values {
			args = append(args, flag, value)
		}
	}
	for name, value := range service.Environment {
		args = append(args, "-e", name+"="+*value)
	}
	for _, volume := range service.Volumes {
		source, mode := volume.Source, ""
		switch volume.Target {
		case "/data":
			source = h.volume
		case "/var/run/docker.sock": // the engine of this test
			source, _, _ = strings.Cut(line[slices.Index(line, "-v")+1], ":")
		}
		if volume.ReadOnly {
			mode = ":ro"
		}
		args = append(args, "-v", source+":"+volume.Target+mode)
	}
	p := start(t, "docker", append(args, service.Image)...)
	s := connect(t, p, upstream.Legacy)
	// Of the project it is told nothing, so the secret is missing.
	got := h.call(t, s, "mcp_add", `{"name":"`+h.server+`"}`)
	if want := "SHOP_TOKEN"; !strings.Contains(got, want) {
		t.Errorf("mcp_add = %s, want %s in it", got, want)
	}
	got = h.call(t, s, "mcp_add", `{"name":"plain"}`)
	if !strings.Contains(got, "activated") {
		t.Errorf("mcp_add = %s, want it activated", got)
	}
	if got := h.call(t, s, "plain__read_text_file", `{"path":"/data/note.txt"}`); !strings.Contains(got, "a note") {
		t.Errorf("read_text_file = %s, want the note", got)
	}
}

// A gateway that was told of nothing takes no path of its own for the host's.
func TestImageBlind(t *testing.T) {
	api := needImages(t)
	h := newHome(t, api, "")
	catalog := filepath.Join(h.dir, "all.yaml")
	text := "version: 1\nservers:\n"
	sources := map[string]string{
		"own":  "/data",
		"root": "/",
		"home": "~/notes",
		"host": h.notes,
	}
	for name, source := range sources {
		text += fmt.Sprintf("  %s: {image: dockgate-test/filesystem, mounts: [{source: %q, target: /data}]}\n", name, source)
	}
	if err := os.WriteFile(catalog, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	line := h.command(t)
	var global []string
	if at := slices.Index(line, "run"); at > 1 {
		global = line[1:at]
	}
	socket := line[slices.Index(line, "-v")+1]
	for name, want := range map[string]string{
		"own":  "is never mounted",
		"root": "is never mounted",
		"home": `"HOME:HOME:ro"`,
		"host": `"-v", "` + h.notes + ":" + h.notes + `:ro", "-e", "DOCKGATE_HOST_FOLDERS=` + h.notes + `"`,
	} {
		args := append(slices.Clone(global), "run", "--rm", "--cap-drop", "ALL", "-v", socket, "-v", h.volume+":/data",
			"-v", catalog+":/catalog.yaml:ro", "--cap-add", "DAC_READ_SEARCH", "dockgate/gateway", "--catalog", "/catalog.yaml", "plan", name, "--pull")
		out, err := exec.CommandContext(t.Context(), "docker", args...).CombinedOutput()
		if !isExit(err, 1) || !strings.Contains(string(out), want) {
			t.Errorf("plan %s = %v, want 1\n%s\nwant %s in it", name, err, out, want)
		}
		if strings.Contains(string(out), "hint: change the settings with: dockgate add") {
			t.Errorf("plan %s names a command that is not there:\n%s", name, out)
		}
	}
}
