package e2e_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/era"
	"github.com/dockgate/dockgate/internal/fleet"
	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/upstream"
)

// A request is one that a server answers the same way each time.
type request struct{ method, params string }

// A guest is a server that nobody here wrote.
type guest struct {
	image    string
	folder   bool // it serves a folder that is mounted at /data
	requests []request
}

func guests() map[string]guest {
	conformance := []request{
		{"tools/call", `{"name":"test_simple_text","arguments":{}}`},
		{"tools/call", `{"name":"test_image_content","arguments":{}}`},
		{"tools/call", `{"name":"test_audio_content"}`},
		{"tools/call", `{"name":"test_multiple_content_types","arguments":{}}`},
		{"tools/call", `{"name":"test_embedded_resource","arguments":{}}`},
		{"tools/call", `{"name":"test_error_handling","arguments":{}}`},
		{"prompts/get", `{"name":"test_prompt_with_image"}`},
		{"prompts/get", `{"name":"test_prompt_with_arguments","arguments":{"arg1":"a","arg2":"<&>\u2028"}}`},
		{"resources/read", `{"uri":"test://static-text"}`},
		{"resources/read", `{"uri":"test://static-binary"}`},
		{"resources/read", `{"uri":"test://template/7/data"}`},
	}
	return map[string]guest{
		"everything": {image: "dockgate-test/everything", requests: []request{
			{"tools/call", `{"name":"echo","arguments":{"message":"héllo <&> \u2028 \"q\""}}`},
			{"tools/call", `{"name":"get-sum","arguments":{"a":1.50,"b":2}}`},
			{"tools/call", `{"name":"get-sum","arguments":{"a":"x"}}`},
			{"tools/call", `{"name":"get-tiny-image","arguments":{}}`},
			{"tools/call", `{"name":"get-structured-content","arguments":{"location":"New York"}}`},
			{"tools/call", `{"name":"get-annotated-message","arguments":{"messageType":"error","includeImage":true}}`},
			{"tools/call", `{"name":"get-resource-links","arguments":{"count":3}}`},
			{"prompts/get", `{"name":"args-prompt","arguments":{"city":"Bern"}}`},
			{"prompts/get", `{"name":"args-prompt"}`},
			{"resources/read", `{"uri":"demo://resource/static/document/features.md"}`},
			{"completion/complete", `{"ref":{"type":"ref/prompt","name":"completable-prompt"},"argument":{"name":"department","value":"E"}}`},
		}},
		"filesystem": {image: "dockgate-test/filesystem", folder: true, requests: []request{
			{"tools/call", `{"name":"list_directory","arguments":{"path":"/data"}}`},
			{"tools/call", `{"name":"read_text_file","arguments":{"path":"/data/note.txt"}}`},
			{"tools/call", `{"name":"write_file","arguments":{"path":"/data/new.txt","content":"zero\u200bwidth"}}`},
			{"tools/call", `{"name":"read_text_file","arguments":{"path":"/data/new.txt"}}`},
			{"tools/call", `{"name":"read_text_file","arguments":{"path":"/etc/passwd"}}`},
			{"tools/call", `{"name":"read_text_file","arguments":{}}`},
		}},
		"mark3labs": {image: "dockgate-test/mark3labs", folder: true, requests: []request{
			{"tools/call", `{"name":"list_directory","arguments":{"path":"/data"}}`},
			{"tools/call", `{"name":"read_file","arguments":{"path":"/data/note.txt"}}`},
			{"tools/call", `{"name":"read_file","arguments":{"path":"/nowhere"}}`},
		}},
		"conformance-legacy": {image: "dockgate-test/conformance-legacy", requests: conformance},
		"conformance-modern": {image: "dockgate-test/conformance-modern", requests: conformance},
	}
}

// Each server is listed, approved and called through the gateway, and answers
// what its bare container answers, but for what one era of the protocol has
// alone.
func TestServers(t *testing.T) {
	api := needEngine(t)
	for name, g := range guests() {
		for _, spoken := range []upstream.Era{upstream.Legacy, upstream.Modern} {
			t.Run(name+"/"+string(spoken), func(t *testing.T) {
				t.Parallel()
				needImage(t, api, g.image)
				folder := t.TempDir()
				if err := os.Chmod(folder, 0o777); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(folder, "note.txt"), []byte("a note\n"), 0o644); err != nil {
					t.Fatal(err)
				}
				entry := fmt.Sprintf("  guest: {image: %s, limits: {memory: 256MB}", g.image)
				mount := []string{}
				if g.folder {
					entry += fmt.Sprintf(", mounts: [{source: %q, target: /data}]", folder)
					mount = []string{"-v", folder + ":/data"}
				}
				h := newHouse(t, entry+"}\n")

				gate := connect(t, h.serve(t, "--approve", "all", "--expose", "dynamic,active", "--prefix", "none"), spoken)
				added, err := gate.Call(t.Context(), "tools/call", json.RawMessage(`{"name":"mcp_add","arguments":{"name":"guest"}}`), nil)
				if err != nil || !bytes.Contains(added, []byte("guest activated")) {
					t.Fatalf("mcp_add = %s, %v", added, err)
				}
				// What a server offers may depend on what it is told of its client.
				bare := connectAs(t, bareContainer(t, g.image, mount...), "", fleet.Capabilities)

				compareOffers(t, gate, bare)
				for _, r := range g.requests {
					got := answer(t, gate, r)
					want := answer(t, bare, r)
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("%s %s differs from the bare container (-bare +gateway):\n%s", r.method, r.params, diff)
					}
				}
			})
		}
	}
}

// bareContainer runs an image without us until the test ends.
func bareContainer(t *testing.T, image string, more ...string) *program {
	t.Helper()
	name := "dockgate-test-" + strings.ToLower(rand.Text())
	args := append([]string{"run", "-i", "--rm", "--network", "none", "--name", name}, more...)
	p := start(t, "docker", append(args, image)...)
	t.Cleanup(func() { // one of them would ask for roots for a minute before it goes
		if out, err := exec.Command("docker", "rm", "--force", name).CombinedOutput(); err != nil {
			t.Errorf("docker rm: %v\n%s", err, out)
		}
	})
	return p
}

// answer returns a result, or an error with its code and data, without
// insignificant whitespace.
func answer(t *testing.T, s *upstream.Session, r request) string {
	t.Helper()
	result, err := s.Call(t.Context(), r.method, json.RawMessage(r.params), nil)
	var refused *jsonrpc.Error
	if errors.As(err, &refused) {
		return fmt.Sprintf("error %d %s %s", refused.Code, refused.Message, refused.Data)
	}
	if err != nil {
		t.Fatalf("%s %s: %v", r.method, r.params, err)
	}
	return settled(t, result)
}

// settled is a result without the members that belong to one era or one hop.
func settled(t *testing.T, result json.RawMessage) string {
	t.Helper()
	var kept []string
	for m, err := range jsonrpc.Members([]byte(compact(t, result))) {
		if err != nil {
			t.Fatalf("%v: %s", err, result)
		}
		raw := string(m.Raw)
		switch string(m.Name) {
		case "resultType", "ttlMs", "cacheScope":
			continue
		case "_meta":
			if raw = `"_meta":` + withoutServer(t, m.Value); raw == `"_meta":{}` {
				continue
			}
		}
		kept = append(kept, raw)
	}
	return "{" + strings.Join(kept, ",") + "}"
}

// withoutServer is a _meta without the name of who has answered.
func withoutServer(t *testing.T, meta json.RawMessage) string {
	t.Helper()
	var kept []string
	for m, err := range jsonrpc.Members(meta) {
		if err != nil {
			t.Fatalf("%v: %s", err, meta)
		}
		if string(m.Name) != "io.modelcontextprotocol/serverInfo" {
			kept = append(kept, string(m.Raw))
		}
	}
	return "{" + strings.Join(kept, ",") + "}"
}

func compact(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	return b.String()
}

func compareOffers(t *testing.T, gate, bare *upstream.Session) {
	t.Helper()
	got, err := gate.Offer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want, err := bare.Offer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	text := func(all []json.RawMessage) string {
		var lines []string
		for _, one := range all {
			lines = append(lines, compact(t, one))
		}
		return strings.Join(lines, "\n")
	}
	var gotTools, wantTools []json.RawMessage
	for _, tool := range got.Tools {
		if !strings.HasPrefix(tool.Name, "mcp_") {
			gotTools = append(gotTools, tool.JSON)
		}
	}
	for _, tool := range want.Tools {
		if !era.NeedsTasks(tool.JSON) { // those are not carried
			wantTools = append(wantTools, tool.JSON)
		}
	}
	for _, list := range []struct {
		name      string
		got, want []json.RawMessage
	}{
		{"tools", gotTools, wantTools},
		{"prompts", got.Prompts, want.Prompts},
		{"resources", got.Resources, want.Resources},
		{"templates", got.Templates, want.Templates},
	} {
		if diff := cmp.Diff(text(list.want), text(list.got)); diff != "" {
			t.Errorf("%s differ from the bare container's (-bare +gateway):\n%s", list.name, diff)
		}
	}
}
